// update_in_backward: moves each optimizer operation of `update` into the backward pass, right
// after the last operation that contributes to its gradient or reads its weight. The gradient then
// lives inside the program, and only about one gradient is alive at a time.
//
//   before   micro    %gradient.w = matmul(%d.y, %x)      %d.x = matmul(%d.y, %w)
//                     %gradient.v = ...
//            update   %gradient_norm = global_norm(%gradient.w, %gradient.v)
//                     %clip_factor = clip_factor(%gradient_norm)
//                     %w, ... <- adamw(%gradient.w, %clip_factor, ...)
//                     %v, ... <- adamw(%gradient.v, %clip_factor, ...)
//   after    micro    %gradient.w = matmul(%d.y, %x)      %d.x = matmul(%d.y, %w)
//                     %gradient_norm.w = global_norm(%gradient.w)
//                     %clip_factor.w = clip_factor(%gradient_norm.w)
//                     %w, ... <- adamw(%gradient.w, %clip_factor.w, ...)
//                     %gradient.v = ...                    and the same for v
//            update   %gradient_norm = global_norm(%gradient_norm.w, %gradient_norm.v)
//
// The factor is 1, or NaN for a gradient that is not finite; the optimizer then leaves that tensor
// unchanged.
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

// Requires that `micro` does not accumulate over micro-batches and that `update` does not clip;
// fails a CHECK otherwise. Replaces `update` by what remains of it.
program::Program update_in_backward(const program::Program& micro, program::Program& update);

}  // namespace snug::passes
