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

#include "program/program.h"

namespace snug::passes {

enum class RecomputeMode : uint8_t {
  none,               // nothing but elementwise outputs
  gate_up,            // also what silu_mul reads
  attention,          // also everything from the layer's input to attention's output
  all_but_attention,  // everything but each layer's input and what attention writes: checkpoints
  layer,              // everything but each layer's input, a checkpoint
};

program::Program recompute(const program::Program& program, RecomputeMode mode);

}  // namespace snug::passes
