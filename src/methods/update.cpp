#include "methods/update.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "program/builder.h"
#include "program/tensor_names.h"

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

// Norm weights and biases are the one-dimensional tensors.
bool decays(const Tensor& trainable) { return trainable.shape.rank() > 1; }

bool has_8bit_moments(const Tensor& trainable, OptimizerKind optimizer) {
  return optimizer == OptimizerKind::adamw_8bit && trainable.shape.elements() >= kMin8bitElements;
}

DType moment_type(const Tensor& trainable, OptimizerKind optimizer) {
  if (optimizer == OptimizerKind::adamw_bf16) return DType::bf16;
  return has_8bit_moments(trainable, optimizer) ? DType::u8 : DType::f32;
}

AdamW adamw(const Tensor& trainable, const UpdateOptions& options, int32_t site) {
  return {.beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .epsilon = static_cast<float>(options.epsilon),
          .weight_decay = decays(trainable) ? static_cast<float>(options.weight_decay) : 0.0F,
          .stochastic = options.optimizer == OptimizerKind::adamw_bf16,
          .has_master = has_master(trainable, options.optimizer),
          .seed = options.seed,
          .site = site};
}

AdamW8bit adamw_8bit(const Tensor& trainable, const UpdateOptions& options, int32_t site) {
  const AdamW constants = adamw(trainable, options, site);
  return {.beta1 = constants.beta1,
          .beta2 = constants.beta2,
          .epsilon = constants.epsilon,
          .weight_decay = constants.weight_decay,
          .seed = options.seed,
          .site = site};
}

// The tensor and all that is kept next to it, in the order of its operation's updates.
std::vector<TensorId> add_state(Builder& builder, const Tensor& trainable,
                                OptimizerKind optimizer) {
  const auto add = [&](Tensor tensor) { return builder.add(std::move(tensor)); };
  const auto moment = [&](std::string name) {
    return sibling(trainable, std::move(name), moment_type(trainable, optimizer), Role::moment,
                   Lifetime::run);
  };
  std::vector<TensorId> updates{add(trainable), add(moment(first_moment_name(trainable.name))),
                                add(moment(second_moment_name(trainable.name)))};
  if (has_8bit_moments(trainable, optimizer))
    for (const std::string& name :
         {first_scale_name(trainable.name), second_scale_name(trainable.name)}) {
      Tensor scale = sibling(trainable, name, DType::f32, Role::moment, Lifetime::run);
      scale.shape = {state_blocks(trainable.shape.elements())};
      updates.push_back(add(std::move(scale)));
    }
  if (has_master(trainable, optimizer))
    updates.push_back(add(
        sibling(trainable, master_name(trainable.name), DType::f32, Role::master, Lifetime::run)));
  return updates;
}

}  // namespace

bool has_master(const Tensor& trainable, OptimizerKind optimizer) {
  return moment_type(trainable, optimizer) == DType::f32 && trainable.dtype != DType::f32;
}

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

Program update(std::span<const Tensor> trainables, std::span<const int32_t> sites,
               const UpdateOptions& options) {
  SNUG_CHECK_EQ(sites.size(), trainables.size());
  Builder builder(ProgramName::update);
  builder.set_phase(Phase::update);
  const TensorId learning_rate = scalar(builder, kLearningRateName, DType::f32, Role::batch);
  const TensorId step = scalar(builder, kStepName, DType::i32, Role::batch);
  const TensorId norm = scalar(builder, kGradientNormName, DType::f32, Role::scalar);
  const TensorId factor = scalar(builder, kClipFactorName, DType::f32, Role::scalar);
  std::vector<TensorId> gradients;
  for (const Tensor& trainable : trainables)
    gradients.push_back(builder.add(sibling(trainable, gradient_name(trainable.name),
                                            options.gradient, Role::gradient, Lifetime::step)));
  builder.emit(GlobalNorm{}, gradients, {norm});
  builder.emit(ClipFactor{static_cast<float>(options.max_grad_norm)}, {norm}, {factor});
  for (size_t i = 0; i < trainables.size(); ++i) {
    const Tensor& trainable = trainables[i];
    const std::vector<TensorId> reads{gradients[i], factor, learning_rate, step};
    std::vector<TensorId> updates = add_state(builder, trainable, options.optimizer);
    const int32_t site = sites[i];
    builder.set_layer(trainable.layer);
    if (has_8bit_moments(trainable, options.optimizer))
      builder.emit(adamw_8bit(trainable, options, site), reads, {}, std::move(updates));
    else
      builder.emit(adamw(trainable, options, site), reads, {}, std::move(updates));
  }
  return builder.take();
}

Program prepare(std::span<const Tensor> trainables, const UpdateOptions& options) {
  Builder builder(ProgramName::prepare);
  for (const Tensor& trainable : trainables) {
    if (!has_master(trainable, options.optimizer)) continue;
    const TensorId master = builder.add(
        sibling(trainable, master_name(trainable.name), DType::f32, Role::master, Lifetime::run));
    const TensorId weight = builder.add(trainable);
    builder.set_layer(trainable.layer);
    builder.emit(Cast{}, {master}, {weight});
  }
  return builder.take();
}

}  // namespace snug::methods
