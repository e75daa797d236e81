// What kinds have in common whose segments go on with sequences: a tensor (places, columns) with a
// row for each of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "program/ir/tensor.h"

namespace snug::program {

// Of such a tensor, the bytes that operand_bytes (traffic.h) counts of rows that no segment has.
inline double bytes_of_unused_places(const Tensor& places, int64_t segments) {
  const int64_t unused = std::max<int64_t>(0, places.shape[0] - segments);
  return 2.0 * static_cast<double>(unused * places.shape[1] * size_of(places.dtype));
}

}  // namespace snug::program
