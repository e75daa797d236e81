// Blocks of a matrix product with fp32 sums, for fp16 factors, and for fp32 ones on instruction
// sets where oneDNN's own takes its scratch from the heap. b is packed first, as fp32, and so is a,
// unless it is fp32 whose rows are without gaps: those are read where they lie. So every
// transpose and type ends in the same inner loop.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Rows of a and columns of b that the inner loop holds in registers: 6 x 16 sums are 12 of AVX2's
// 16 registers.
inline constexpr int64_t kGemmRows = 6;
inline constexpr int64_t kGemmColumns = 16;

// A matrix in memory; strides count elements.
struct GemmSource {
  const void* data;
  int64_t row_stride;
  int64_t column_stride;
};

// Where sums go: c = alpha * sum + addend, where a null addend is zero; it may be c itself.
struct GemmDestination {
  float* c;
  int64_t c_stride;
  const float* addend;
  int64_t addend_stride;
  float alpha;
};

// Rows of a, fp32, as the inner loop reads them: of a packed block, or of the matrix itself.
struct GemmRows {
  const float* data;
  int64_t row_stride;
  int64_t step_stride;   // along k
  int64_t panel_stride;  // between the first rows of panels of kGemmRows
};

struct GemmKernels {
  // (rows, k) of a as panels of kGemmRows rows, k by k; (k, columns) of b as panels of kGemmColumns
  // columns. Rows and columns that are absent are zeros. Null for bf16.
  void (*pack_a[kElements])(const GemmSource& a, int64_t rows, int64_t k, float* packed);
  void (*pack_b[kElements])(const GemmSource& b, int64_t k, int64_t columns, float* packed);
  // The product of rows and a packed block of b. Reads no rows that are absent.
  void (*block)(const GemmRows& a, const float* packed_b, const int64_t (&rows_columns_k)[3],
                const GemmDestination& destination);
};

}  // namespace snug::backends::cpu
