#include "methods/update.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "methods/lora.h"
#include "program/ir/builder.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/optimizer/muon.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

Tensor sibling(const Tensor& trainable, std::string name, DType dtype, Role role,
               Lifetime lifetime) {
  Tensor tensor = trainable;
  tensor.name = std::move(name);
  tensor.dtype = dtype;
  tensor.role = role;
  tensor.lifetime = lifetime;
  return tensor;
}

TensorId scalar(Builder& builder, std::string_view name, DType dtype, Role role) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = {1};
  tensor.dtype = dtype;
  tensor.role = role;
  tensor.lifetime = Lifetime::step;
  return builder.add(std::move(tensor));
}

bool is_master(const OptimizerState& state) { return state.tensor.role == Role::master; }

// What is stepped in the place of a tensor: its master, or itself.
Tensor stepped_value(const Tensor& trainable, const UpdateOptions& options) {
  const std::vector<OptimizerState> states = optimizer_of(options.optimizer).states(trainable);
  const auto master = std::ranges::find_if(states, is_master);
  return master == states.end() ? trainable : master->tensor;
}

}  // namespace

std::vector<TensorId> trainable_tensors(const Program& forward,
                                        std::span<const std::string> frozen) {
  const bool adapted = std::any_of(forward.tensors.begin(), forward.tensors.end(),
                                   [](const Tensor& t) { return t.role == Role::adapter; });
  const std::unordered_set<std::string_view> left_out(frozen.begin(), frozen.end());
  std::vector<TensorId> ids;
  for (size_t i = 0; i < forward.tensors.size(); ++i)
    if (const Tensor& tensor = forward.tensors[i];
        tensor.role == (adapted ? Role::adapter : Role::weight) && !left_out.contains(tensor.name))
      ids.push_back(static_cast<TensorId>(i));
  return ids;
}

std::vector<int32_t> random_sites(const Program& forward, std::span<const TensorId> trainable) {
  const std::vector<TensorId> all = trainable_tensors(forward);
  std::vector<int32_t> sites;
  for (const TensorId id : trainable)
    sites.push_back(static_cast<int32_t>(std::ranges::lower_bound(all, id) - all.begin()));
  return sites;
}

namespace {

// The learning rate, and its multiples for tensors that train with another one.
class LearningRates {
 public:
  LearningRates(Builder& builder, const UpdateOptions& options)
      : builder_(builder),
        options_(options),
        base_(scalar(builder, kLearningRateName, DType::f32, Role::batch)) {}

  TensorId of(const Tensor& trainable) {
    const double share = loraplus_rate(trainable, options_);
    if (share == 1.0) return base_;
    const auto [entry, is_new] = multiples_.try_emplace(share, kNone);
    if (is_new) {
      entry->second = scalar(builder_, fmt::format("{}.times_{}", kLearningRateName, share),
                             DType::f32, Role::scalar);
      builder_.emit(Scale{static_cast<float>(share)}, {base_}, {entry->second});
    }
    return entry->second;
  }

 private:
  Builder& builder_;
  const UpdateOptions& options_;
  const TensorId base_;
  std::map<double, TensorId> multiples_;
};

TensorId find_or_add(Builder& builder, const Tensor& tensor) {
  const TensorId found = builder.program().find(tensor.name);
  return found == kNone ? builder.add(tensor) : found;
}

// Moves the average towards the stepped value as muon_momentum moves a mean of gradients: what is
// averaged takes the gradient's place, and the direction, which is the average again, is not read.
// The factor is 1 where the update acts, so that a step that changes nothing leaves the average
// alone too.
void emit_average(Builder& builder, const Tensor& trainable, TensorId factor,
                  const UpdateOptions& options) {
  const TensorId value = find_or_add(builder, stepped_value(trainable, options));
  const TensorId average = builder.add(average_of(trainable).tensor);
  const TensorId direction =
      builder.add(sibling(trainable, fmt::format("{}.direction", average_name(trainable.name)),
                          trainable.dtype, Role::activation, Lifetime::program));
  builder.emit(MuonMomentum{.momentum = static_cast<float>(options.ema_decay), .nesterov = false},
               {value, factor}, {direction}, {average});
}

bool is_read(const Program& program, TensorId id) {
  return std::ranges::any_of(program.operations, [&](const Operation& operation) {
    return std::ranges::find(operation.reads, id) != operation.reads.end();
  });
}

Program update_of(std::span<const Tensor> trainables, std::span<const int32_t> sites,
                  const UpdateOptions& options, bool counts_steps) {
  SNUG_CHECK_EQ(sites.size(), trainables.size());
  Builder builder(ProgramName::update);
  builder.set_phase(Phase::update);
  LearningRates learning_rates(builder, options);
  const Optimizer& optimizer = optimizer_of(options.optimizer);
  const TensorId step = counts_steps ? scalar(builder, kStepName, DType::i32, Role::batch) : kNone;
  const TensorId norm = scalar(builder, kGradientNormName, DType::f32, Role::scalar);
  const TensorId factor = scalar(builder, kClipFactorName, DType::f32, Role::scalar);
  std::vector<TensorId> gradients;
  for (const Tensor& trainable : trainables)
    gradients.push_back(builder.add(sibling(trainable, gradient_name(trainable.name),
                                            options.gradient, Role::gradient, Lifetime::step)));
  if (options.loss_scale) {
    emit_scaled_clip(builder, gradients, norm, factor, options.max_grad_norm, *options.loss_scale);
  } else {
    builder.emit(GlobalNorm{}, gradients, {norm});
    builder.emit(ClipFactor{static_cast<float>(options.max_grad_norm)}, {norm}, {factor});
  }
  TensorId finite = kNone;
  if (options.ema_decay > 0) {
    finite = scalar(builder, kFiniteFactorName, DType::f32, Role::scalar);
    builder.emit(ClipFactor{}, {norm}, {finite});
  }
  for (size_t i = 0; i < trainables.size(); ++i) {
    const Tensor& trainable = trainables[i];
    SteppedTensor stepped{.trainable = trainable,
                          .site = sites[i],
                          .gradient = gradients[i],
                          .factor = factor,
                          .learning_rate = learning_rates.of(trainable),
                          .step = step};
    stepped.updates = {builder.add(trainable)};
    for (OptimizerState& state : optimizer.states(trainable))
      stepped.updates.push_back(builder.add(std::move(state.tensor)));
    builder.set_layer(trainable.layer);
    optimizer.emit(builder, stepped, options);
    if (options.ema_decay > 0) emit_average(builder, trainable, finite, options);
  }
  return builder.take();
}

}  // namespace

// Leaves out the step number where no operation reads it: an optimizer may count steps only for
// tensors that are not among these.
Program update(std::span<const Tensor> trainables, std::span<const int32_t> sites,
               const UpdateOptions& options) {
  if (optimizer_of(options.optimizer).counts_steps) {
    Program counted = update_of(trainables, sites, options, true);
    if (is_read(counted, counted.find(kStepName))) return counted;
  }
  return update_of(trainables, sites, options, false);
}

void begin_averages(std::span<const Tensor> trainables, const UpdateOptions& options,
                    Builder& initialise) {
  if (options.ema_decay == 0) return;
  for (const Tensor& trainable : trainables) {
    initialise.set_layer(trainable.layer);
    const TensorId value = find_or_add(initialise, stepped_value(trainable, options));
    initialise.emit(Cast{}, {value}, {initialise.add(average_of(trainable).tensor)});
  }
}

Program take_averages(std::span<const Tensor> trainables, const UpdateOptions& options) {
  Builder builder(ProgramName::average);
  if (options.ema_decay == 0) return builder.take();
  for (const Tensor& trainable : trainables) {
    builder.set_layer(trainable.layer);
    const TensorId average = builder.add(average_of(trainable).tensor);
    builder.emit(Cast{}, {average}, {builder.add(stepped_value(trainable, options))});
  }
  return builder.take();
}

Program prepare(std::span<const Tensor> trainables, const UpdateOptions& options) {
  Builder builder(ProgramName::prepare);
  const Optimizer& optimizer = optimizer_of(options.optimizer);
  for (const Tensor& trainable : trainables) {
    const std::vector<OptimizerState> states = optimizer.states(trainable);
    const auto master_state = std::ranges::find_if(states, is_master);
    if (master_state == states.end()) continue;
    const TensorId master = builder.add(master_state->tensor);
    const TensorId weight = builder.add(trainable);
    builder.set_layer(trainable.layer);
    builder.emit(Cast{}, {master}, {weight});
  }
  return builder.take();
}

}  // namespace snug::methods
