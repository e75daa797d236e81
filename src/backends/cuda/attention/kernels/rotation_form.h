// Which rotations kernels can make of whole vectors. This needs no CUDA header.
#pragma once

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

// Whether the halves of the rotated part, and those of the rest, consist of whole vectors.
constexpr bool can_rotate_vectors(int64_t head_dim, int64_t width, bool neighbours) {
  return !neighbours && width / 2 % kVectorElements == 0 &&
         (head_dim - width) / 2 % kVectorElements == 0;
}

}  // namespace snug::backends::cuda
