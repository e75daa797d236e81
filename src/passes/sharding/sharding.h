// Which tensors are sharded over ranks, and how: flat, rank r of a replica holds elements
// [r n, (r + 1) n), padded so that no block of any sort lies on two ranks.
//
// n is a multiple of 256 elements, and of 16,384 where scales of NF4 blocks are in 8 bits too: what
// is quantised, rounded by chance or kept in 8 bits then has the same values for any number of
// ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/recipe/choices.h"
#include "program/ir/program.h"
#include "program/kinds/optimizer/optimizer_state.h"
#include "program/kinds/transfer/rank_group.h"

namespace snug::passes {

// Which part of the weights a rank holds between programs, and when it holds more.
enum class WeightSharding : uint8_t {
  whole,               // all of them (ddp, zero1, zero2)
  program_by_program,  // its part; all within a program, from their first use to their last
  layer_by_layer,      // its part; a layer's while that layer works
};

// How the gradients of all ranks are summed.
enum class GradientSharding : uint8_t {
  summed,          // whole on every rank, summed in the last micro-batch (ddp)
  scattered_last,  // whole on every rank; in the last micro-batch a rank's part of the sum (zero1)
  scattered,       // a rank's part of the sum, added up over micro-batches
};

// When the gather of a layer's weights begins; with `pre`, two layers' are in memory at a time.
using formats::Prefetch;

struct ShardingOptions {
  int32_t shards = 1;      // ranks among which the tensors of a replica are sharded
  int32_t replicas = 1;    // of that
  int32_t node_ranks = 1;  // on a machine
  WeightSharding weights = WeightSharding::whole;
  GradientSharding gradients = GradientSharding::summed;
  Prefetch prefetch = Prefetch::pre;
  bool sent_bf16 = false;                // gradients are rounded before they travel
  int64_t threshold_elements = 100'000;  // smaller weights stay whole on every rank

  int32_t ranks() const { return shards * replicas; }
  int32_t ranks_of(program::RankGroup group) const;
  int32_t nodes_of(program::RankGroup group) const;
  bool shards_state() const { return shards > 1 && gradients != GradientSharding::summed; }
  bool shards_weights() const { return shards > 1 && weights != WeightSharding::whole; }
};

// A tensor that is sharded, or padded so that it can be.
struct ShardedTensor {
  int64_t elements = 0;    // of a rank
  bool is_padded = false;  // every rank holds all ranks' parts
};

// Whether ranks hold parts of what the optimizer keeps of a tensor that trains: it is large enough,
// and nothing writes all of it.
bool divides_state(const program::Tensor& trainable, const ShardingOptions& options);

// Answers by the names of tensors that last longer than a program.
class Sharding {
 public:
  Sharding() = default;
  // `micro`: a program with all weights as they are stored. `states`: what the optimizer keeps of
  // each of the trainables; where state is sharded, nothing that belongs to all of a tensor.
  Sharding(const program::Program& micro, std::span<const program::Tensor> trainables,
           std::span<const std::vector<program::OptimizerState>> states,
           const ShardingOptions& options);

  // Nothing: every rank holds it whole.
  std::optional<ShardedTensor> find(std::string_view tensor) const;
  // Whether it is the gradient of what is trained.
  bool is_gradient(std::string_view tensor) const { return gradients_.contains(tensor); }
  // Whether it is the norm of a gradient of which a rank has a part.
  bool is_part_norm(std::string_view tensor) const { return part_norms_.contains(tensor); }

 private:
  void add_weight(const program::Program& micro, const program::Tensor& weight,
                  const ShardingOptions& options);
  void add_state(const program::Tensor& trainable,
                 const std::vector<program::OptimizerState>& states,
                 const ShardingOptions& options);
  std::unordered_map<std::string, ShardedTensor> parts_;
  std::set<std::string, std::less<>> gradients_;
  std::set<std::string, std::less<>> part_norms_;
};

}  // namespace snug::passes
