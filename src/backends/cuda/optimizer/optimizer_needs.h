// How many tensors the update's kernels take at once, and the layout of their scratch.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// The most tensors whose squares one launch sums, limited by the size of a kernel's arguments
// (SquaresList).
inline constexpr int64_t kTensorsPerNorm = 80;

// Floats that muon's normalize reserves for the norm, before its partial sums, which must begin at
// an even index of floats (norm_sums_offset).
inline constexpr int64_t kNormFloats = 2;

}  // namespace snug::backends::cuda
