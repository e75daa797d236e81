// What the update's kernels take at once.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// Tensors of which one launch sums the squares: what fits into a kernel's arguments (SquaresList).
inline constexpr int64_t kTensorsPerNorm = 80;

}  // namespace snug::backends::cuda
