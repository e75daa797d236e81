// How the scratch of normalize is laid out.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// The norm, before its partial sums, which begin at an even float (norm_sums_offset).
inline constexpr int64_t kNormFloats = 2;

}  // namespace snug::backends::cuda
