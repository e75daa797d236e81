#include "passes/gradient/update_in_backward.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "passes/uses.h"
#include "program/ir/builder.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

Tensor scalar(std::string name, Lifetime lifetime) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = {1};
  tensor.role = Role::scalar;
  tensor.lifetime = lifetime;
  return tensor;
}

Operation operation_of(Attributes attributes, std::vector<TensorId> reads,
                       std::vector<TensorId> writes, int32_t layer) {
  Operation operation;
  operation.attributes = attributes;
  operation.reads = std::move(reads);
  operation.writes = std::move(writes);
  operation.phase = Phase::update;
  operation.layer = layer;
  return operation;
}

class Mover {
 public:
  Mover(const Program& micro, const Program& update)
      : update_(update), result_(micro), last_touch_(last_touch_of_owner(micro)) {
    for (size_t id = 0; id < micro.tensors.size(); ++id)
      by_name_.emplace(micro.tensors[id].name, static_cast<TensorId>(id));
    for (const Operation& operation : update.operations)
      if (traits_of(operation).category == Category::optimizer) move(operation);
  }

  Program moved() && {
    const std::vector<Operation> before = std::move(result_.operations);
    result_.operations.clear();
    for (size_t i = 0; i < before.size(); ++i) {
      result_.operations.push_back(before[i]);
      for (Operation& operation : after_[static_cast<int32_t>(i)])
        result_.operations.push_back(std::move(operation));
    }
    return std::move(result_);
  }

  // What remains of the update: the norm of all gradients, computed from the norm of each.
  Program left() const {
    Builder builder(update_.name);
    builder.set_phase(Phase::update);
    std::vector<TensorId> parts;
    for (const TensorId norm : norms_) parts.push_back(builder.add(result_.tensor(norm)));
    const TensorId total = update_.find(kGradientNormName);
    SNUG_CHECK(total != kNone, "{} has no {}", update_.name, kGradientNormName);
    builder.emit(GlobalNorm{}, parts, {builder.add(update_.tensor(total))});
    return builder.take();
  }

 private:
  TensorId find_or_add(const Tensor& tensor) {
    const auto [entry, is_new] =
        by_name_.try_emplace(tensor.name, static_cast<TensorId>(result_.tensors.size()));
    if (is_new) result_.tensors.push_back(tensor);
    return entry->second;
  }

  int32_t last_touch(TensorId id) const {
    const TensorId owner = result_.owner(id);
    return static_cast<size_t>(owner) < last_touch_.size() ? last_touch_[static_cast<size_t>(owner)]
                                                           : -1;
  }

  // Each moved operation gets a clip factor computed from its own gradient's norm. So the operation
  // that makes the shared factor must neither clip nor unscale the loss.
  void check_factor(TensorId factor) const {
    const auto maker = std::ranges::find_if(update_.operations, [&](const Operation& operation) {
      return std::ranges::count(operation.writes, factor) > 0;
    });
    SNUG_CHECK(maker != update_.operations.end() && maker->attributes == Attributes(ClipFactor{}),
               "an update that clips, or scales gradients, cannot move");
  }

  void move(const Operation& optimizer) {
    Operation here = optimizer;
    const TensorId shared_factor = find_operand(here, kFactorOperand);
    check_factor(shared_factor);
    for (TensorId& id : here.reads)
      if (id != shared_factor) id = find_or_add(update_.tensor(id));
    for (TensorId& id : here.updates) id = find_or_add(update_.tensor(id));
    const TensorId gradient = find_operand(here, kGradientOperand);
    const std::string weight = result_.tensor(find_operand(here, kWeightOperand)).name;
    int32_t last = last_touch(gradient);
    SNUG_CHECK(last >= 0, "nothing in {} writes the gradient of {}", result_.name, weight);
    for (const TensorId id : here.updates) last = std::max(last, last_touch(id));
    result_.tensor(gradient).lifetime = Lifetime::program;
    const TensorId norm = find_or_add(scalar(gradient_norm_name(weight), Lifetime::step));
    norms_.push_back(norm);
    const TensorId factor = find_or_add(scalar(clip_factor_name(weight), Lifetime::program));
    replace_operand(here, kFactorOperand, factor);
    std::vector<Operation>& after = after_[last];
    after.push_back(operation_of(GlobalNorm{}, {gradient}, {norm}, here.layer));
    after.push_back(operation_of(ClipFactor{}, {norm}, {factor}, here.layer));
    after.push_back(std::move(here));
  }

  const Program& update_;
  Program result_;
  std::vector<int32_t> last_touch_;                    // in micro, by owner of bytes
  std::map<int32_t, std::vector<Operation>> after_;    // by the operation of micro that they follow
  std::unordered_map<std::string, TensorId> by_name_;  // tensors of the result, by name
  std::vector<TensorId> norms_;                        // of each gradient
};

}  // namespace

Program update_in_backward(const Program& micro, Program& update) {
  Mover mover(micro, update);
  Program left = mover.left();
  Program moved = std::move(mover).moved();
  update = std::move(left);
  return moved;
}

}  // namespace snug::passes
