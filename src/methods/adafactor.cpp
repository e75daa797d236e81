// Adafactor keeps, for each matrix, the means of its second moments over rows and over columns. An
// update of any part of a tensor needs the means over the whole tensor, so ranks cannot divide a
// tensor among them. Its sums are added in another order on a GPU than on a CPU.
#include <utility>

#include "methods/optimizer.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/optimizer/adafactor.h"

namespace snug::methods {
namespace {

using program::DType;
using program::OptimizerState;
using program::Tensor;

bool is_factored(const Tensor& trainable) { return trainable.shape.rank() == 2; }

std::vector<OptimizerState> adafactor_states(const Tensor& trainable) {
  std::vector<OptimizerState> states{
      moment_of(trainable, program::row_moment_name(trainable.name), DType::f32)};
  if (is_factored(trainable)) {
    states.push_back(moment_of(trainable, program::column_moment_name(trainable.name), DType::f32));
    for (int axis = 0; axis < 2; ++axis) {
      OptimizerState& state = states[static_cast<size_t>(axis)];
      state.tensor.shape = {trainable.shape[axis]};
      state.shared_by = 0;
    }
  }
  if (trainable.dtype != DType::f32) states.push_back(master_of(trainable));
  return states;
}

void emit_adafactor(program::Builder& builder, const SteppedTensor& tensor,
                    const UpdateOptions& options) {
  builder.emit(program::Adafactor{.decay_rate = static_cast<float>(options.decay_rate),
                                  .clip_threshold = static_cast<float>(options.clip_threshold),
                                  .weight_decay = weight_decay_of(tensor.trainable, options),
                                  .factored = is_factored(tensor.trainable),
                                  .has_master = tensor.trainable.dtype != DType::f32},
               {tensor.gradient, tensor.factor, tensor.learning_rate, tensor.step}, {},
               tensor.updates);
}

}  // namespace

const Optimizer kAdafactor{.kind = OptimizerKind::adafactor,
                           .states = adafactor_states,
                           .emit = emit_adafactor,
                           .steps_parts = false,
                           .steps_on_host = false};

}  // namespace snug::methods
