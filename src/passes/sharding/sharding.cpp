#include "passes/sharding/sharding.h"

#include <algorithm>

#include "base/error.h"
#include "passes/lowering/quantize.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/optimizer/optimizer.h"
#include "program/kinds/product/nf4.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

constexpr int64_t kUnit = 256;
// Elements that share a scale of scales.
constexpr int64_t kNestedUnit = kNf4BlockSize * kUnit;

int64_t part_of(int64_t elements, int32_t ranks, int64_t unit) {
  const int64_t units = (elements + unit - 1) / unit;
  return (units + ranks - 1) / ranks * unit;
}

// Adapter vectors with one number per output (magnitudes) stay whole: they are small, and the
// program that computes their initial values writes them whole.
bool stays_whole(const Tensor& tensor) {
  return tensor.role == Role::adapter && tensor.shape.rank() < 2;
}

}  // namespace

bool divides_state(const Tensor& trainable, const ShardingOptions& options) {
  return options.shards_state() && trainable.shape.elements() >= options.threshold_elements &&
         !stays_whole(trainable);
}

int32_t ShardingOptions::ranks_of(RankGroup group) const {
  switch (group) {
    case RankGroup::shards:
      return shards;
    case RankGroup::replicas:
      return replicas;
    case RankGroup::all:
      break;
  }
  return ranks();
}

// The shards of a replica are neighbouring ranks, so that they are on as few machines as possible.
int32_t ShardingOptions::nodes_of(RankGroup group) const {
  const int32_t nodes = (ranks() + node_ranks - 1) / node_ranks;
  if (group == RankGroup::shards) return (shards + node_ranks - 1) / node_ranks;
  return std::min(nodes, ranks_of(group));
}

Sharding::Sharding(const Program& micro, std::span<const Tensor> trainables,
                   std::span<const std::vector<OptimizerState>> states,
                   const ShardingOptions& options) {
  SNUG_CHECK_EQ(states.size(), trainables.size());
  if (options.shards_weights()) {
    // Only the tensors that add_weight looks up by name, to make that lookup quick; none where
    // weights are not quantised.
    Program quant_states;
    for (const Tensor& tensor : micro.tensors)
      if (tensor.role == Role::quant_state) quant_states.tensors.push_back(tensor);
    for (const Tensor& tensor : micro.tensors)
      if (tensor.lifetime == Lifetime::run && !tensor.is_view() &&
          (tensor.role == Role::weight || tensor.role == Role::adapter))
        add_weight(quant_states, tensor, options);
  }
  for (size_t i = 0; i < trainables.size(); ++i) {
    gradients_.insert(gradient_name(trainables[i].name));
    if (options.shards_state()) add_state(trainables[i], states[i], options);
  }
}

void Sharding::add_weight(const Program& states, const Tensor& weight,
                          const ShardingOptions& options) {
  const bool is_stored = states.find(absmax_name(weight.name)) != kNone;
  const int64_t elements = is_stored ? weight.shape.elements() * 2 : weight.shape.elements();
  if (elements < options.threshold_elements || stays_whole(weight)) return;
  const bool is_nested = is_stored && states.find(nested_map_name(weight.name)) != kNone;
  const int64_t part = part_of(elements, options.shards, is_nested ? kNestedUnit : kUnit);
  parts_[weight.name] = {.elements = is_stored ? part / 2 : part};
  if (is_stored) parts_[absmax_name(weight.name)] = {.elements = part / kNf4BlockSize};
  if (is_nested) parts_[nested_absmax_name(weight.name)] = {.elements = part / kNestedUnit};
}

void Sharding::add_state(const Tensor& trainable, const std::vector<OptimizerState>& states,
                         const ShardingOptions& options) {
  const int64_t elements = trainable.shape.elements();
  if (!divides_state(trainable, options)) return;
  const ShardedTensor part{.elements = part_of(elements, options.shards, kUnit)};
  static_assert(kUnit % kStateBlock == 0);
  for (const OptimizerState& state : states) {
    SNUG_CHECK(state.shared_by > 0, "{} belongs to all of {}", state.tensor.name, trainable.name);
    parts_[state.tensor.name] = {.elements = part.elements / state.shared_by};
  }
  part_norms_.insert(gradient_norm_name(trainable.name));
  const auto padded = [&](bool is_padded) {
    return ShardedTensor{.elements = part.elements, .is_padded = is_padded};
  };
  parts_[trainable.name] = padded(options.weights == WeightSharding::whole);
  parts_[gradient_name(trainable.name)] =
      padded(options.gradients == GradientSharding::scattered_last);
}

std::optional<ShardedTensor> Sharding::find(std::string_view tensor) const {
  const auto found = parts_.find(std::string(tensor));
  if (found == parts_.end()) return std::nullopt;
  return found->second;
}

}  // namespace snug::passes
