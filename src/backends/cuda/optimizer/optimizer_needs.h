// What the update's kernels take at once, and how scratch of theirs is laid out.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// Tensors of which one launch sums the squares: what fits into a kernel's arguments (SquaresList).
inline constexpr int64_t kTensorsPerNorm = 80;

// The floats that muon's normalize has for the norm, before its partial sums, which begin at an
// even float (norm_sums_offset).
inline constexpr int64_t kNormFloats = 2;

}  // namespace snug::backends::cuda
