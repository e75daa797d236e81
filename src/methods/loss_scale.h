// Loss scaling, for gradients in fp16 (docs/fp16.md). Rewrites a forward program so that its
// gradients are scaled while its losses stay unscaled:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %inverse_tokens.scaled = scale_by(%inverse_tokens, %loss_scale)
//            %losses, %loss.scaled = linear_cross_entropy(.., %inverse_tokens.scaled)
//            %loss = scale_by(%loss.scaled, %loss_scale) {divides}
//
// and in `update`, in place of clip_factor:
//
//            %gradient_norm, %clip_factor = scaled_clip_factor(%gradient_norm.scaled)
//                                           updates %loss_scale, %loss_scale_counts
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/builder.h"
#include "program/ir/program.h"

namespace snug::methods {

struct LossScaleOptions {
  double first = 65536;
  int64_t window = 2000;   // finite steps in a row after which it grows; 0: it never grows
  int64_t hysteresis = 1;  // steps that are not finite after which it falls
  double least = 0;
  bool operator==(const LossScaleOptions&) const = default;
};

// A run stops after this many skipped steps in a row.
inline constexpr int64_t kMostSkippedSteps = 10;

// Tensors of lifetime run: the scale, and the counts of scaled_clip_factor.
program::Tensor loss_scale_tensor();
program::Tensor loss_scale_counts_tensor();

// Scales all losses of a forward program from which gradients begin, together with the values that
// are measured with them.
program::Program scale_losses(const program::Program& forward);

// Emits the norm and the clip factor of the gradients, and the next loss scale.
void emit_scaled_clip(program::Builder& builder, const std::vector<program::TensorId>& gradients,
                      program::TensorId norm, program::TensorId factor, double max_grad_norm,
                      const LossScaleOptions& options);

}  // namespace snug::methods
