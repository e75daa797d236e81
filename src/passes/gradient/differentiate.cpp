// Stages: find the tensors that need a gradient; emit the forward operations, with the loss in its
// training form; then go through the forward operations in reverse and emit each kind's derivative,
// whose results contribute to gradients, with sums after each. Which activations are saved is
// decided by recompute, and adding in place by lower.
#include "passes/gradient/differentiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "program/ir/inputs.h"
#include "program/ir/result_names.h"
#include "program/ir/tape.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/kind.h"
#include "program/verify/verify_regions.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

class Differentiator final : public Tape {
 public:
  Differentiator(const Program& forward, std::span<const TensorId> trainable,
                 const DifferentiateOptions& options)
      : forward_(forward), options_(options), result_(forward) {
    result_.operations.clear();
    wants_.assign(forward.tensors.size(), false);
    trainable_.assign(forward.tensors.size(), false);
    gradient_.assign(forward.tensors.size(), kNone);
    for (const TensorId id : trainable) wants_[index(id)] = trainable_[index(id)] = true;
  }

  Program run() {
    check_views();
    propagate_wants();
    phase_ = Phase::forward;
    for (const Operation& operation : forward_.operations) {
      operation_ = &operation;
      if (traits_of(operation).has_training_form)
        derive(operation);
      else
        result_.operations.push_back(operation);
    }
    if (options_.accumulate) {
      SNUG_CHECK(result_.find(kLossName) != kNone, "no tensor named {} in {}", kLossName,
                 result_.name);
      for (const std::string_view name : kResultNames)
        if (const TensorId id = result_.find(name); id != kNone) accumulate_result(id);
    }
    phase_ = Phase::backward;
    for (auto it = forward_.operations.rbegin(); it != forward_.operations.rend(); ++it) {
      if (const auto found = later_.find(&*it); found != later_.end())
        derive_later(*it, found->second);
      else if (!traits_of(*it).has_training_form && reached(*it))
        derive(*it);
    }
    return std::move(result_);
  }

  const Program& program() const override { return result_; }
  bool wants(TensorId id) const override {
    return index(id) < wants_.size() && wants_[index(forward_.owner(id))];
  }
  TensorId gradient(TensorId id) const override {
    if (index(id) >= gradient_.size()) return kNone;
    check_parts(id);
    return gradient_[index(id)];
  }

  TensorId contribute(TensorId input) override {
    SNUG_CHECK(wants(input), "{} wants no gradient", result_.tensor(input).name);
    if (result_.tensor(input).is_view()) return contribute_to_part(input);
    SNUG_CHECK(!parts_.contains(input), "{} is read whole and in parts",
               result_.tensor(input).name);
    const TensorId id = trainable_[index(input)] ? contribute_to_weight(input)
                                                 : fresh(input, "d." + result_.tensor(input).name);
    pending_.emplace_back(input, id);
    return id;
  }

  void pass_through(TensorId input, TensorId gradient) override {
    SNUG_CHECK(!trainable_[index(input)] && !result_.tensor(input).is_view(),
               "a trainable tensor or a view needs a gradient of its own");
    pending_.emplace_back(input, gradient);
  }

  bool is_read(TensorId id) const override {
    return std::any_of(forward_.operations.begin(), forward_.operations.end(),
                       [&](const Operation& operation) {
                         return std::count(operation.reads.begin(), operation.reads.end(), id) > 0;
                       });
  }

  void later(std::function<void()> emit) override {
    SNUG_CHECK(later_.emplace(operation_, std::move(emit)).second, "two parts of {} come later",
               program::name_of(operation_->kind()));
  }

  void emit(Attributes attributes, std::vector<TensorId> reads,
            std::vector<TensorId> writes) override {
    Operation operation;
    operation.attributes = attributes;
    operation.reads = std::move(reads);
    operation.writes = std::move(writes);
    push(std::move(operation));
  }

  TensorId temporary(const char* suffix, const Shape& shape, DType dtype) override {
    Tensor tensor;
    tensor.name = unique(fmt::format("d.{}", suffix));
    tensor.shape = shape;
    tensor.dtype = dtype;
    tensor.layer = layer_;
    return add(std::move(tensor));
  }

 private:
  // Checks that every tensor which is cut up into views is written whole.
  void check_views() const {
    for (const Operation& operation : forward_.operations)
      for (const TensorId id : operation.writes)
        SNUG_CHECK(!forward_.tensor(id).is_view(), "the forward pass writes the view {}",
                   forward_.tensor(id).name);
  }

  void propagate_wants() {
    for (const Operation& operation : forward_.operations) {
      const bool any = std::any_of(operation.reads.begin(), operation.reads.end(),
                                   [&](TensorId id) { return wants(id); });
      if (!any) continue;
      for (const TensorId id : operation.writes)
        if (base::is_float(forward_.tensor(id).dtype)) wants_[index(id)] = true;
    }
  }

  bool reached(const Operation& operation) const {
    const bool flows = std::any_of(operation.writes.begin(), operation.writes.end(),
                                   [&](TensorId id) { return gradient_[index(id)] != kNone; });
    const bool starts = traits_of(operation).is_loss();
    return (flows || starts) && std::any_of(operation.reads.begin(), operation.reads.end(),
                                            [&](TensorId id) { return wants(id); });
  }

  void derive(const Operation& operation) {
    layer_ = operation.layer;
    for (const TensorId id : operation.writes) complete_parts(id);
    program::differentiate(operation, *this);
    sum_contributions();
  }

  void derive_later(const Operation& operation, const std::function<void()>& emit_part) {
    layer_ = operation.layer;
    emit_part();
    sum_contributions();
  }

  void push(Operation operation) {
    operation.phase = phase_;
    operation.layer = layer_;
    result_.operations.push_back(std::move(operation));
  }

  TensorId add(Tensor tensor) {
    result_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  std::string unique(std::string name) {
    const int count = ++used_[name];
    return count == 1 ? name : fmt::format("{}.{}", name, count);
  }

  TensorId fresh(TensorId like, std::string name) {
    Tensor tensor;
    tensor.name = unique(std::move(name));
    tensor.shape = result_.tensor(like).shape;
    tensor.dtype = result_.tensor(like).dtype;
    tensor.layer = layer_;
    return add(std::move(tensor));
  }

  // In a `micro_first` program, the first contribution becomes the gradient itself; later ones are
  // added to it.
  TensorId contribute_to_weight(TensorId weight) {
    const Tensor trained = result_.tensor(weight);
    Tensor tensor;
    tensor.name = gradient_name(trained.name);
    tensor.shape = trained.shape;
    tensor.dtype = options_.gradient;
    tensor.role = Role::gradient;
    tensor.lifetime = Lifetime::step;
    tensor.layer = trained.layer;
    const bool first = gradient_[index(weight)] == kNone;
    if (first) gradient_[index(weight)] = add(tensor);
    const bool adds =
        options_.accumulate && !(options_.begins_anew && options_.begins_anew(trained));
    if (first && !adds) return gradient_[index(weight)];
    tensor.name = unique(tensor.name + ".part");
    tensor.lifetime = Lifetime::program;
    return add(std::move(tensor));
  }

  // The gradient of a view is the same view of its base's gradient; contributions of further
  // readers are added to it.
  TensorId contribute_to_part(TensorId input) {
    const TensorId owner = forward_.owner(input);
    std::vector<TensorId>& parts = parts_[owner];
    TensorId& whole = gradient_[index(owner)];
    SNUG_CHECK((whole == kNone) == parts.empty(), "{} is read whole and in parts",
               forward_.tensor(owner).name);
    if (whole == kNone) whole = fresh(owner, "d." + forward_.tensor(owner).name);
    const auto known = std::find(parts.begin(), parts.end(), input);
    if (known != parts.end()) {
      const TensorId share = fresh(input, "d." + forward_.tensor(input).name);
      pending_.emplace_back(input, share);
      return share;
    }
    for (const TensorId other : parts)
      SNUG_CHECK(!overlap(region_of(forward_, other), region_of(forward_, input)),
                 "{} and {} overlap, and both want a gradient", forward_.tensor(other).name,
                 forward_.tensor(input).name);
    parts.push_back(input);
    const TensorId part = fresh(input, "d." + forward_.tensor(input).name);
    result_.tensor(part).view = forward_.tensor(input).view;
    result_.tensor(part).view.base = whole;
    gradient_[index(input)] = part;
    return part;
  }

  // Parts of a tensor that nothing reads have a zero gradient, such as the queries of a fused
  // projection of which only keys and values are used.
  void complete_parts(TensorId owner) {
    const auto found = parts_.find(owner);
    if (found == parts_.end()) return;
    for (size_t i = 0; i < forward_.tensors.size(); ++i) {
      const auto view = static_cast<TensorId>(i);
      if (forward_.tensor(view).view.base != owner || is_read(view)) continue;
      const bool is_apart = std::ranges::none_of(found->second, [&](TensorId part) {
        return overlap(region_of(forward_, part), region_of(forward_, view));
      });
      if (!is_apart) continue;
      const TensorId part = contribute_to_part(view);
      push({.attributes = Zeros{}, .reads = {}, .writes = {part}, .updates = {}});
    }
  }

  // Checks that a gradient made in parts is complete before it is read.
  void check_parts(TensorId owner) const {
    const auto found = parts_.find(owner);
    if (found == parts_.end()) return;
    WrittenRegions written;
    for (const TensorId part : found->second) written.add(region_of(forward_, part));
    SNUG_CHECK(written.covers(region_of(forward_, owner)),
               "a part of {} is read by nothing that has a gradient", forward_.tensor(owner).name);
  }

  void sum_contributions() {
    for (const auto& [input, contribution] : std::exchange(pending_, {})) {
      if (result_.tensor(input).is_view()) {
        push({.attributes = Accumulate{},
              .reads = {contribution},
              .writes = {},
              .updates = {gradient_[index(input)]}});
        continue;
      }
      TensorId& sum = gradient_[index(input)];
      if (trainable_[index(input)]) {
        if (contribution != sum) accumulate(contribution, sum);
      } else if (sum == kNone) {
        sum = contribution;
      } else {
        const TensorId total = fresh(input, "d." + result_.tensor(input).name);
        emit(Add{}, {sum, contribution}, {total});
        sum = total;
      }
    }
  }

  void accumulate(TensorId part, TensorId gradient) {
    Operation operation;
    operation.reads = {part};
    operation.updates = {gradient};
    const bool rounded = options_.stochastic && result_.tensor(gradient).dtype == DType::bf16;
    if (rounded) operation.reads.push_back(random_input(result_));
    operation.attributes = Accumulate{.stochastic = rounded,
                                      .seed = rounded ? options_.seed : 0,
                                      .site = rounded ? next_site_++ : 0};
    push(std::move(operation));
  }

  // Lets the operation that writes a result write a new tensor instead, and adds that tensor to the
  // result.
  void accumulate_result(TensorId result) {
    Tensor part = result_.tensor(result);
    part.name += ".part";
    part.lifetime = Lifetime::program;
    const TensorId part_id = add(std::move(part));
    for (Operation& operation : result_.operations)
      std::replace(operation.writes.begin(), operation.writes.end(), result, part_id);
    layer_ = -1;
    Operation operation;
    operation.attributes = Accumulate{};
    operation.reads = {part_id};
    operation.updates = {result};
    push(std::move(operation));
  }

  const Program& forward_;
  const DifferentiateOptions& options_;
  Program result_;
  std::vector<bool> wants_;
  std::vector<bool> trainable_;
  std::vector<TensorId> gradient_;
  std::unordered_map<TensorId, std::vector<TensorId>> parts_;  // by owner: its views with a
                                                               // gradient
  std::vector<std::pair<TensorId, TensorId>> pending_;         // input, contribution to its
                                                               // gradient
  std::unordered_map<std::string, int> used_;
  // The operation of the forward list whose derivative is being emitted.
  const Operation* operation_ = nullptr;
  std::unordered_map<const Operation*, std::function<void()>> later_;
  Phase phase_ = Phase::forward;
  int32_t layer_ = -1;
  int32_t next_site_ = 1 << 20;  // distinct from the sites of dropout and of the optimizer
};

}  // namespace

Program differentiate(const Program& forward, std::span<const TensorId> trainable,
                      const DifferentiateOptions& options) {
  return Differentiator(forward, trainable, options).run();
}

}  // namespace snug::passes
