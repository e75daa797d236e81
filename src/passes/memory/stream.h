// stream: tensors that outlast a program (weights, optimizer state, gradients) and that the options
// place in pinned host memory are copied to the device while operations there touch them, and
// copied back where they were changed. Copies overlap with compute: a window of bytes limits how
// much of the device's memory they take, and so how far ahead they begin.
//
//   before   %y = matmul(%x, %w)                      %w: a weight of layer 0
//            %z = matmul(%y, %v)                      %v: a weight of layer 1
//   after    %w.streamed = transfer(%w)               %w, %v: pinned_host
//            await(%w) updates %w.streamed
//            %v.streamed = transfer(%v)               next to the product below
//            %y = matmul(%x, %w.streamed)
//            await(%v) updates %v.streamed
//            %z = matmul(%y, %v.streamed)
//
// An operation that runs on the host uses the tensors in place.
#pragma once

#include <cstdint>

#include "program/ir/program.h"

namespace snug::passes {

// Which tensors are placed in host memory. Tensors below the threshold stay on the device: starting
// a copy of them would take longer than the copy itself.
struct StreamOptions {
  // Weights as they are stored, in 16 bits or as NF4, and adapters.
  bool params = false;
  // Masters, moments, and the gradients of a whole step.
  bool optimizer = false;
  // Optimizers whose state is in host memory run on the host.
  bool update_on_host = false;
  int64_t threshold_bytes = int64_t{64} << 10;
  // The limit of bytes for copies on the device at one time, which a single operation may exceed.
  // 0: each tensor is copied only when it is needed.
  int64_t window_bytes = 0;

  bool moves_any() const { return params || optimizer; }
};

// Whether the tensor is placed in host memory.
bool lies_on_host(const program::Tensor& tensor, const StreamOptions& options);

// Streams the tensors of a lowered program. Operations that are separated by an inserted copy are
// no longer joined.
program::Program stream(const program::Program& program, const StreamOptions& options,
                        const program::Target& target);

}  // namespace snug::passes
