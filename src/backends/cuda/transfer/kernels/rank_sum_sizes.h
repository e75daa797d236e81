// The number of launches that round or add up what ranks sum (rank_sums.h). This arithmetic needs
// no CUDA header, so that plans can be made without the toolkit.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// The most tensors, or parts of them, in one launch, whose argument is a table of them.
inline constexpr int kRankSumEntries = 48;

constexpr int64_t rank_sum_launches(int64_t entries) {
  return (entries + kRankSumEntries - 1) / kRankSumEntries;
}

}  // namespace snug::backends::cuda
