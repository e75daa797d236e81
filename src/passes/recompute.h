// recompute: drops saved activations and emits their producers again before the first backward
// operation that reads them. Elementwise outputs (norms, gated activation, dropout) are never
// saved.
//
//   before   %n = rms_norm(%x, %w)   %y = matmul(%n, %v)                    forward
//            %gradient.v = matmul(%d.y, %n) {transpose_a}                   backward
//   after    %n = rms_norm(%x, %w)   %y = matmul(%n, %v)                    forward
//            %n.again = rms_norm(%x, %w)                                    recompute
//            %gradient.v = matmul(%d.y, %n.again) {transpose_a}             backward
#pragma once

#include "formats/choices.h"
#include "program/program.h"

namespace snug::passes {

using RecomputeMode = formats::Recompute;

program::Program recompute(const program::Program& program, RecomputeMode mode);

}  // namespace snug::passes
