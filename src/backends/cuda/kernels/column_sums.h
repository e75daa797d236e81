// Sums over the rows of a matrix, and their scratch.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/operand.h"
#include "backends/cuda/launch_shape.h"

namespace snug::backends::cuda {

// At most 64 blocks of rows, of at least 64 rows each.
constexpr int64_t column_sum_block_rows(int64_t rows) {
  const int64_t share = ceil_div(rows, 64);
  return share < 64 ? 64 : share;
}
constexpr int64_t column_sum_blocks(int64_t rows) {
  return ceil_div(rows, column_sum_block_rows(rows));
}
constexpr int64_t column_sums_bytes(int64_t rows, int64_t columns) {
  return column_sum_blocks(rows) * columns * int64_t{sizeof(float)};
}

struct ColumnSumsRun {
  int64_t rows = 0;
  int64_t columns = 0;
  float* partials = nullptr;  // column_sums_bytes
  Operand y;                  // (columns)
  bool accumulate = false;
};
// Of the elements of x (rows, columns).
void sum_rows(const Operand& x, const ColumnSumsRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
