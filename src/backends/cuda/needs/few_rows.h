// Which operations of a layer one launch does together while decoding, where rows are few. How many
// launches a layer takes counts next to its bytes there.
#pragma once

#include <cstddef>

#include "program/program.h"

namespace snug::backends::cuda {

// Neighbours of the list, from `first` on, that a launch of products does (few_rows_matrix.h):
//
//   [rms_norm] [matmul or matmul_nf4] ... [silu_mul]
//
// a norm whose output all products read, up to three products that read the same rows, and the
// gated activation of two. At least 1: an operation that runs by itself.
size_t few_rows_together(const program::Program& program, size_t first);

// The same for rotations and writes to the cache (rope.h): [rope] ... [cache_write] ..., if there
// is a write among them.
size_t rotations_together(const program::Program& program, size_t first);

}  // namespace snug::backends::cuda
