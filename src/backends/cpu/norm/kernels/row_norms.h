// Sums of squares over rows of a weight plus a low-rank product, in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// The rows of a tile, which a thread processes at once.
inline constexpr int64_t kNormRows = 16;
// The columns of a tile: at this width it takes 16 KiB of the first-level cache.
inline constexpr int64_t kNormColumns = 256;

// w is (rows, n), with rows kNormColumns apart; a is (rank, n), with rows a_stride elements apart;
// b is (rows, rank), already scaled.
struct NormTile {
  const float* w;
  const void* a;
  int64_t a_stride;
  const float* b;
  int64_t rank;  // 0 if there is no low-rank product
  int64_t rows;
  int64_t n;
  float* squares;  // (rows): the sums of squares of w + b a are added to these
};

struct RowNormsKernels {
  // Indexed by [type of a].
  void (*add_squares[kElements])(const NormTile& tile);
};

}  // namespace snug::backends::cpu
