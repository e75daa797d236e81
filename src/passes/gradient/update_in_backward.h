// update_in_backward: moves each optimizer operation of `update` into the backward pass, right
// after the last operation that contributes to its gradient or reads its weight. The gradient then
// lives inside the program, and about one is alive at a time.
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
// The factor is 1, or NaN for a gradient that is not finite, which leaves that tensor alone.
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

// `micro` accumulates over nothing, and the factor of `update` clips to nothing: a bug otherwise.
// What is left of the update replaces `update`.
program::Program update_in_backward(const program::Program& micro, program::Program& update);

}  // namespace snug::passes
