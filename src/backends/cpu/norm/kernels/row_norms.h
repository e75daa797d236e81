// Squares of rows of a weight to which a product of low rank is added, in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Rows of a tile; how many a thread makes at once.
inline constexpr int64_t kNormRows = 16;
// Columns of a tile: with so many, 16 KiB of a first-level cache.
inline constexpr int64_t kNormColumns = 256;

// w (rows, n), kNormColumns apart; a (rank, n) with rows a_stride elements apart; b (rows, rank),
// scaled already.
struct NormTile {
  const float* w;
  const void* a;
  int64_t a_stride;
  const float* b;
  int64_t rank;  // 0: nothing is added
  int64_t rows;
  int64_t n;
  float* squares;  // (rows): the sums of squares of w + b a are added to them
};

struct RowNormsKernels {
  // [a]
  void (*add_squares[kElements])(const NormTile& tile);
};

}  // namespace snug::backends::cpu
