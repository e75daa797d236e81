// offload: moves the checkpoints that recompute keeps of each layer (its input, and in some modes
// attention's output) to pinned host memory, from the end of the layer until the backward pass
// reaches the layer after it. The copies overlap with compute: out while the layer runs, back while
// the backward pass of the layer after it runs.
//
//   before   %x1 = matmul(%x0, %v)                    %x1, %x2: checkpoints      forward
//            %x2 = matmul(%x1, %w)                    %x2: the last layer's input
//            ...
//            %d.x2 = rms_norm_grad(%x2, ...)                                     backward
//            %d.x1 = rms_norm_grad(%x1, ...)
//   after    %x1 = matmul(%x0, %v)                                               forward
//            %x1.offloaded = transfer(%x1)
//            %x2 = matmul(%x1, %w)
//            await(%x1) updates %x1.offloaded         x1 dies
//            ...
//            %x1.fetched = transfer(%x1.offloaded)                               backward
//            %d.x2 = rms_norm_grad(%x2, ...)
//            await(%x1.offloaded) updates %x1.fetched
//            %d.x1 = rms_norm_grad(%x1.fetched, ...)
//
// Checkpoints of the last layer stay on the device, as its backward pass comes next.
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

// Offloads the checkpoints that layers keep; runs after recompute. A program without checkpoints is
// returned unchanged. Transfers run on the channel of their direction; where the host can access
// the device's memory, the same CPU does both, so they run on the compute channel.
program::Program offload(const program::Program& program, const program::Target& target);

}  // namespace snug::passes
