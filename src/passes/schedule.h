// schedule: the order of operations within a layer's backward pass, so that what is large dies
// early. One stream: prefetch and overlap come with the spaces that need them.
//
//   before   %d.x = matmul(%d.y, %w)               %gradient.w = matmul(%d.y, %x.again)
//   after    %gradient.w = matmul(%d.y, %x.again)  %d.x = matmul(%d.y, %w)        x.again dies
//   first
#pragma once

#include "program/program.h"

namespace snug::passes {

// Keeps every dependency and the given order wherever another does not lower the peak of live
// bytes.
program::Program schedule(const program::Program& program);

}  // namespace snug::passes
