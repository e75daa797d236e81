// Lion keeps one fp32 moment.
#include "program/kinds/optimizer/lion.h"
#include "methods/optimizer.h"
#include "program/ir/tensor_names.h"

namespace snug::methods {
namespace {

std::vector<program::OptimizerState> lion_states(const program::Tensor& trainable) {
  std::vector<program::OptimizerState> states{
      moment_of(trainable, program::first_moment_name(trainable.name), program::DType::f32)};
  if (trainable.dtype != program::DType::f32) states.push_back(master_of(trainable));
  return states;
}

void emit_lion(program::Builder& builder, const SteppedTensor& tensor,
               const UpdateOptions& options) {
  builder.emit(program::Lion{.beta1 = static_cast<float>(options.beta1),
                             .beta2 = static_cast<float>(options.beta2),
                             .weight_decay = weight_decay_of(tensor.trainable, options),
                             .has_master = tensor.trainable.dtype != program::DType::f32},
               {tensor.gradient, tensor.factor, tensor.learning_rate}, {}, tensor.updates);
}

}  // namespace

const Optimizer kLion{
    .kind = OptimizerKind::lion, .states = lion_states, .emit = emit_lion, .counts_steps = false};

}  // namespace snug::methods
