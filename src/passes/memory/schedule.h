// schedule: orders the operations of a layer's backward pass so that large tensors die early.
// Copies between memory spaces do not exist yet: the passes offload and stream insert them
// afterwards.
//
//   before   %d.x = matmul(%d.y, %w)               %gradient.w = matmul(%d.y, %x.again)
//   after    %gradient.w = matmul(%d.y, %x.again)  %d.x = matmul(%d.y, %w)
//
// so that x.again dies first.
#pragma once

#include "program/ir/program.h"

namespace snug::passes {

// Keeps all dependencies, and keeps the given order unless another one lowers the peak of live
// bytes.
program::Program schedule(program::Program program);

}  // namespace snug::passes
