#include "methods/lora_targets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/last_part.h"
#include "formats/adapter/adapter_modules.h"
#include "formats/adapter/peft_adapter.h"
#include "methods/lora.h"
#include "program/ir/operands.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/expert/route.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/product/matmul.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

std::string module_of_weight(const Tensor& weight) {
  return weight.name.substr(0, weight.name.rfind('.'));
}

template <typename Call>
void checked(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    base::throw_user_error("target_modules: {}", error.what());
  }
}

// The outputs of routers, before their biases are added. Routers are not adapted, as PEFT does not
// treat them as linears either; the gate of a shared expert, which has one output, is a linear.
std::set<TensorId> routing_logits(const Program& program) {
  std::set<TensorId> logits;
  for (auto operation = program.operations.rbegin(); operation != program.operations.rend();
       ++operation) {
    if (operation->attributes.is<Route>() &&
        program.tensor(id_of(*operation, Route::kLogits)).shape.columns() > 1)
      logits.insert(id_of(*operation, Route::kLogits));
    else if (operation->attributes.is<AddBias>() && logits.contains(id_of(*operation, AddBias::kY)))
      logits.insert(id_of(*operation, AddBias::kX));
  }
  return logits;
}

// The weights of linears that belong to no layer, whose products come before those of all layers;
// the head comes after them.
std::set<TensorId> linears_before_layers(const Program& program) {
  std::set<TensorId> weights;
  for (const Operation& operation : program.operations) {
    if (operation.layer >= 0) break;
    if (operation.attributes.is<Matmul>()) weights.insert(id_of(operation, Matmul::kB));
  }
  return weights;
}

// The names of the modules that may train whole, in order, each by its last part. Linears of layers
// are excluded, and so are their biases, although these are vectors.
std::vector<std::string> modules_that_save(const Program& forward) {
  std::vector<std::string> names;
  std::set<std::string> matrices;
  for (const Tensor& tensor : forward.tensors) {
    if (tensor.role != Role::weight && tensor.role != Role::adapter) continue;
    std::string name = base::last_part(tensor.name.substr(0, tensor.name.rfind('.')));
    if (tensor.layer >= 0 && tensor.shape.rank() > 1) matrices.insert(name);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  std::erase_if(names, [&](const std::string& name) { return matrices.contains(name); });
  return names;
}

// Marks all weights of a module to train next to the adapter. Two names may select the same tensor.
void train_whole(Program& forward, const std::string& module) {
  bool found = false;
  for (Tensor& tensor : forward.tensors) {
    const bool is_of_model = tensor.role == Role::weight || tensor.role == Role::adapter;
    if (!is_of_model || !formats::is_of_module(tensor.name, {module})) continue;
    if (tensor.layer >= 0 && tensor.shape.rank() > 1)
      base::throw_user_error(
          "modules_to_save: \"{}\" is a matrix of a layer ({}), which does not train whole next to "
          "an adapter; name it in target_modules, or use method=full with trainable_modules",
          module, tensor.name);
    tensor.role = Role::adapter;
    found = true;
  }
  if (!found)
    base::throw_user_error("modules_to_save: \"{}\" matches no module of this model; it has {}",
                           module, fmt::join(modules_that_save(forward), ", "));
}

}  // namespace

Program with_saved_modules(Program forward, const std::vector<std::string>& modules) {
  for (const std::string& module : modules) train_whole(forward, module);
  return forward;
}

Program with_tables(Program forward, const std::vector<std::string>& weights) {
  for (const std::string& weight : weights) {
    const TensorId id = forward.find(weight);
    SNUG_CHECK(id != kNone, "no weight {} in {}", weight, forward.name);
    forward.tensors[index(id)].role = Role::adapter;
  }
  return forward;
}

LoraTarget::LoraTarget(const std::string& written) : written_(written) {
  if (formats::is_module_pattern(written)) checked([&] { pattern_.emplace(written); });
}

bool LoraTarget::selects_by_name(const std::string& module) const {
  return !pattern_ && (module == written_ || module.ends_with("." + written_));
}

bool LoraTarget::selects_linear(const std::string& module) const {
  if (!pattern_) return written_ == formats::kAllLinear || selects_by_name(module);
  bool is_match = false;
  checked([&] { is_match = pattern_->matches(module); });
  return is_match;
}

LoraTargets::LoraTargets(const Program& forward, const std::vector<std::string>& written,
                         std::string head)
    : forward_(forward),
      head_(std::move(head)),
      routing_(routing_logits(forward)),
      before_layers_(linears_before_layers(forward)) {
  for (const std::string& one : written) require_match(one, targets_.emplace_back(one));
}

// Whether this is the product with the head's weight, which is an embedding's table if it is tied.
bool LoraTargets::is_head(const Operation& operation) const {
  if (head_.empty() || operation.layer >= 0) return false;
  const TensorId id = id_of(operation, Matmul::kB);
  const Tensor& weight = forward_.tensor(id);
  if (weight.role != Role::weight && weight.role != Role::adapter) return false;
  return module_of_weight(weight) == head_ ||
         std::ranges::any_of(forward_.operations, [&](const Operation& other) {
           return other.attributes.is<Embedding>() && id_of(other, Embedding::kTable) == id;
         });
}

std::string LoraTargets::linear_of(const Operation& operation) const {
  const auto* matmul = operation.attributes.get_if<Matmul>();
  if (matmul == nullptr || matmul->addend || routing_.contains(id_of(operation, Matmul::kC)))
    return {};
  if (is_head(operation)) return head_;
  const TensorId id = id_of(operation, Matmul::kB);
  const Tensor& weight = forward_.tensor(id);
  const bool is_linear = weight.layer >= 0 || before_layers_.contains(id);
  return weight.role == Role::weight && is_linear ? module_of_weight(weight) : std::string{};
}

std::string LoraTargets::embedding_of(const Operation& operation) const {
  if (!operation.attributes.is<Embedding>()) return {};
  const Tensor& table = forward_.tensor(id_of(operation, Embedding::kTable));
  const bool is_of_model = table.role == Role::weight || table.role == Role::adapter;
  const bool has_rows = table.shape.rank() > 1;  // a list of numbers by id is no table
  return is_of_model && has_rows ? module_of_weight(table) : std::string{};
}

bool LoraTargets::selects(const LoraTarget& target, const std::string& linear) const {
  return linear == head_ ? target.selects_by_name(linear) : target.selects_linear(linear);
}

std::string LoraTargets::adapted_linear(const Operation& operation) const {
  std::string module = linear_of(operation);
  const bool is_adapted =
      !module.empty() && std::ranges::any_of(targets_, [&](const LoraTarget& target) {
        return selects(target, module);
      });
  return is_adapted ? module : std::string{};
}

std::string LoraTargets::adapted_embedding(const Operation& operation) const {
  std::string module = embedding_of(operation);
  const bool is_adapted =
      !module.empty() && std::ranges::any_of(targets_, [&](const LoraTarget& target) {
        return target.selects_by_name(module);
      });
  return is_adapted ? module : std::string{};
}

void LoraTargets::require_match(const std::string& written, const LoraTarget& target) const {
  std::set<std::string> linears;
  std::set<std::string> embeddings;
  std::string first;
  for (const Operation& operation : forward_.operations) {
    const std::string linear = linear_of(operation);
    const std::string embedding = embedding_of(operation);
    if ((!linear.empty() && selects(target, linear)) ||
        (!embedding.empty() && target.selects_by_name(embedding)))
      return;
    if (!linear.empty()) linears.insert(base::last_part(linear));
    if (!embedding.empty()) embeddings.insert(base::last_part(embedding));
    if (first.empty()) first = linear;
  }
  if (!head_.empty() && target.selects_by_name(head_))
    base::throw_user_error(
        "target_modules: \"{}\" is the model's head, and LoRA of the head is not built for "
        "training; train all of it with modules_to_save={} instead, or leave it out",
        written, base::last_part(head_));
  base::throw_user_error(
      "target_modules: \"{}\" matches no linear of this model{}; it has {}, or use "
      "all-linear{}; embeddings are {}, by name",
      written,
      routing_.empty() ? ""
                       : " that is adapted (routers are not, and experts are by target_parameters)",
      fmt::join(linears, ", "),
      formats::is_module_pattern(written)
          ? ". A regular expression matches whole names, such as " + first
          : "",
      fmt::join(embeddings, ", "));
}

std::vector<std::string> lora_modules(const Program& forward,
                                      const std::vector<std::string>& target_modules) {
  const LoraTargets targets(forward, target_modules);
  std::vector<std::string> modules;
  for (const Operation& operation : forward.operations)
    for (std::string module :
         {targets.adapted_embedding(operation), targets.adapted_linear(operation)})
      if (!module.empty()) modules.push_back(std::move(module));
  return modules;
}

}  // namespace snug::methods
