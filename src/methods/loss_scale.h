// Loss scaling, for gradients in fp16 (docs/fp16.md). A forward program whose losses begin their
// gradients with a scale, and are what they were:
//
//   before   %losses, %loss = linear_cross_entropy(%hidden, %head, %targets, %inverse_tokens)
//   after    %inverse_tokens.scaled = scale_by(%inverse_tokens, %loss_scale)
//            %losses, %loss.scaled = linear_cross_entropy(.., %inverse_tokens.scaled)
//            %loss = scale_by(%loss.scaled, %loss_scale) {divides}
//
// and in `update`, in the place of clip_factor:
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
  int64_t window = 2000;   // finite steps in a row until it grows; 0: it stays as it is
  int64_t hysteresis = 1;  // steps that are not finite until it falls
  double least = 0;
  bool operator==(const LossScaleOptions&) const = default;
};

// After so many skipped steps in a row a run stops.
inline constexpr int64_t kMostSkippedSteps = 10;

// What lasts through the run: the scale, and the counts of scaled_clip_factor.
program::Tensor loss_scale_tensor();
program::Tensor loss_scale_counts_tensor();

// Scales, in a forward program with losses, all losses that gradients begin with, and what is
// measured with them.
program::Program scale_losses(const program::Program& forward);

// The norm and the clip factor of gradients (`gradients`), and the next scale.
void emit_scaled_clip(program::Builder& builder, const std::vector<program::TensorId>& gradients,
                      program::TensorId norm, program::TensorId factor, double max_grad_norm,
                      const LossScaleOptions& options);

}  // namespace snug::methods
