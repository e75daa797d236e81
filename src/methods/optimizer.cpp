#include "methods/optimizer.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "models/forward/prompt_names.h"
#include "program/ir/tensor_names.h"

namespace snug::methods {

const Optimizer& optimizer_of(OptimizerKind kind) {
  for (const Optimizer* optimizer :
       {&kAdamW, &kAdamWBf16, &kAdamW8bit, &kLion, &kAdafactor, &kMuon})
    if (optimizer->kind == kind) return *optimizer;
  SNUG_CHECK(false, "the table has no optimizer {}", base::word_of(kind));
  return kAdamW;
}

bool steps_on_host(OptimizerKind kind, double ema_decay) {
  return optimizer_of(kind).steps_on_host && ema_decay == 0;
}

std::vector<std::vector<program::OptimizerState>> states_of(
    std::span<const program::Tensor> trainables, const UpdateOptions& options) {
  const Optimizer& optimizer = optimizer_of(options.optimizer);
  std::vector<std::vector<program::OptimizerState>> states;
  states.reserve(trainables.size());
  for (const program::Tensor& trainable : trainables) {
    states.push_back(optimizer.states(trainable));
    if (options.ema_decay > 0) states.back().push_back(average_of(trainable));
  }
  return states;
}

program::OptimizerState moment_of(const program::Tensor& trainable, std::string name,
                                  program::DType dtype) {
  program::OptimizerState state{.tensor = trainable};
  state.tensor.name = std::move(name);
  state.tensor.dtype = dtype;
  state.tensor.role = program::Role::moment;
  state.tensor.lifetime = program::Lifetime::run;
  return state;
}

program::OptimizerState master_of(const program::Tensor& trainable) {
  program::OptimizerState state =
      moment_of(trainable, program::master_name(trainable.name), program::DType::f32);
  state.tensor.role = program::Role::master;
  return state;
}

program::OptimizerState average_of(const program::Tensor& trainable) {
  return moment_of(trainable, program::average_name(trainable.name), program::DType::f32);
}

namespace {

// Norms and biases do not decay, as in transformers' Trainer, nor do scales of linears, which are 1
// where they change nothing. One-dimensional tensors are the weights of norms. Biases are
// recognised by their names, since the biases of experts have two dimensions.
bool decays(const program::Tensor& trainable) {
  if (trainable.name.ends_with("bias") || models::is_adjusting_scale(trainable.name)) return false;
  return trainable.shape.rank() > 1 || !trainable.name.ends_with(".weight");
}

}  // namespace

float weight_decay_of(const program::Tensor& trainable, const UpdateOptions& options) {
  return decays(trainable) ? static_cast<float>(options.weight_decay) : 0.0F;
}

}  // namespace snug::methods
