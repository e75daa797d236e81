// Finds the mildest choice that fits, in a list where each choice takes less than the one before.
#pragma once

#include <cstddef>

namespace snug::plan {

// The first index in [0, count) that fits, provided that all indices after it fit too; `count` when
// none does.
template <typename Fits>
size_t first_fitting(size_t count, Fits&& fits_at) {
  if (count == 0 || !fits_at(count - 1)) return count;
  size_t low = 0;
  size_t high = count - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (fits_at(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace snug::plan
