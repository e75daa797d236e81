// stream: what lasts longer than a program (weights, optimizer state, gradients) and is chosen to
// lie in pinned host memory is copied to the device for as long as operations there touch it, and
// copied back where they changed it. Copies go next to what is computed: a window of bytes says how
// much of the device they may take, and so how far ahead they begin.
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
// An operation that is placed on the host works on the tensors where they lie.
#pragma once

#include <cstdint>

#include "program/ir/program.h"

namespace snug::passes {

// What lies in host memory. Tensors below the threshold stay on the device: a copy of them would
// take longer to begin than to make.
struct StreamOptions {
  bool params = false;          // weights as they are stored, in 16 bits or as NF4, and adapters
  bool optimizer = false;       // masters and moments, and the gradients of a whole step
  bool update_on_host = false;  // optimizers whose state lies there work there
  int64_t threshold_bytes = int64_t{64} << 10;
  // Bytes of copies on the device at one time, except where one operation needs more. 0: each is
  // copied when it is needed.
  int64_t window_bytes = 0;

  bool moves_any() const { return params || optimizer; }
};

// Whether the tensor lies in host memory.
bool lies_on_host(const program::Tensor& tensor, const StreamOptions& options);

// Streams the tensors of a lowered program. Operations that a copy now comes between are no longer
// joined.
program::Program stream(const program::Program& program, const StreamOptions& options,
                        const program::Target& target);

}  // namespace snug::passes
