// AdamW in three forms: with fp32 moments, with all state in bf16, and with 8-bit moments.
#include <array>
#include <string>
#include <utility>

#include "methods/optimizer.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

// As in bitsandbytes, only tensors of at least this many elements get 8-bit moments.
constexpr int64_t kMin8bitElements = 4096;

constexpr std::array kLeanerThanWide{OptimizerKind::adamw_bf16, OptimizerKind::adamw_8bit};
constexpr std::array kLeanerThanBf16{OptimizerKind::adamw_8bit};

std::vector<OptimizerState> both_moments(const Tensor& trainable, DType dtype) {
  return {moment_of(trainable, first_moment_name(trainable.name), dtype),
          moment_of(trainable, second_moment_name(trainable.name), dtype)};
}

std::vector<OptimizerState> wide_states(const Tensor& trainable) {
  std::vector<OptimizerState> states = both_moments(trainable, DType::f32);
  if (trainable.dtype != DType::f32) states.push_back(master_of(trainable));
  return states;
}

// A tensor that trains in fp32 whatever the compute type (DoRA's magnitudes) also has fp32 moments.
bool is_wide(const Tensor& trainable) { return trainable.dtype == DType::f32; }

std::vector<OptimizerState> bf16_states(const Tensor& trainable) {
  return is_wide(trainable) ? wide_states(trainable) : both_moments(trainable, DType::bf16);
}

bool is_coded(const Tensor& trainable) { return trainable.shape.elements() >= kMin8bitElements; }

// A bf16 weight is rounded stochastically and needs no master. An fp16 weight has an f32 master,
// which is updated as an f32 weight would be.
bool has_coded_master(const Tensor& trainable) { return trainable.dtype == DType::f16; }

std::vector<OptimizerState> coded_states(const Tensor& trainable) {
  if (!is_coded(trainable)) return wide_states(trainable);
  std::vector<OptimizerState> states = both_moments(trainable, DType::u8);
  for (std::string name : {first_scale_name(trainable.name), second_scale_name(trainable.name)}) {
    OptimizerState scale = moment_of(trainable, std::move(name), DType::f32);
    scale.tensor.shape = {state_blocks(trainable.shape.elements())};
    scale.shared_by = kStateBlock;
    states.push_back(std::move(scale));
  }
  if (has_coded_master(trainable)) states.push_back(master_of(trainable));
  return states;
}

std::vector<TensorId> reads_of(const SteppedTensor& tensor) {
  return {tensor.gradient, tensor.factor, tensor.learning_rate, tensor.step};
}

AdamW adamw(const SteppedTensor& tensor, const UpdateOptions& options) {
  return {.beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .epsilon = static_cast<float>(options.epsilon),
          .weight_decay = weight_decay_of(tensor.trainable, options),
          .seed = options.seed,
          .site = tensor.site};
}

void emit_wide(Builder& builder, const SteppedTensor& tensor, const UpdateOptions& options) {
  AdamW step = adamw(tensor, options);
  step.has_master = tensor.trainable.dtype != DType::f32;
  builder.emit(step, reads_of(tensor), {}, tensor.updates);
}

void emit_bf16(Builder& builder, const SteppedTensor& tensor, const UpdateOptions& options) {
  if (is_wide(tensor.trainable)) return emit_wide(builder, tensor, options);
  AdamW step = adamw(tensor, options);
  step.stochastic = true;
  builder.emit(step, reads_of(tensor), {}, tensor.updates);
}

void emit_coded(Builder& builder, const SteppedTensor& tensor, const UpdateOptions& options) {
  if (!is_coded(tensor.trainable)) return emit_wide(builder, tensor, options);
  const AdamW constants = adamw(tensor, options);
  // The updated tensor comes first, then its moments; the master, if there is one, comes last.
  std::vector<TensorId> changed = tensor.updates;
  const TensorId weight = changed.front();
  if (has_coded_master(tensor.trainable)) {
    changed.front() = changed.back();
    changed.pop_back();
  }
  builder.emit(AdamW8bit{.beta1 = constants.beta1,
                         .beta2 = constants.beta2,
                         .epsilon = constants.epsilon,
                         .weight_decay = constants.weight_decay,
                         .seed = options.seed,
                         .site = tensor.site},
               reads_of(tensor), {}, changed);
  if (has_coded_master(tensor.trainable)) builder.emit(Cast{}, {changed.front()}, {weight});
}

}  // namespace

const Optimizer kAdamW{.kind = OptimizerKind::adamw,
                       .states = wide_states,
                       .emit = emit_wide,
                       .leaner = kLeanerThanWide};
const Optimizer kAdamWBf16{.kind = OptimizerKind::adamw_bf16,
                           .states = bf16_states,
                           .emit = emit_bf16,
                           .leaner = kLeanerThanBf16,
                           .needs_bf16 = true,
                           .narrow_gradients = true};
const Optimizer kAdamW8bit{.kind = OptimizerKind::adamw_8bit,
                           .states = coded_states,
                           .emit = emit_coded,
                           .narrow_gradients = true};

}  // namespace snug::methods
