// How many launches round or add up what ranks sum (rank_sums.h): arithmetic that needs no CUDA
// header, so that plans are made where there is no toolkit.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// Tensors, or parts of them, of one launch, whose argument is a table of them.
inline constexpr int kRankSumEntries = 48;

constexpr int64_t rank_sum_launches(int64_t entries) {
  return (entries + kRankSumEntries - 1) / kRankSumEntries;
}

}  // namespace snug::backends::cuda
