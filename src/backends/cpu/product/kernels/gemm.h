// Blocks of a matrix product with fp32 sums: for fp16 factors, and for fp32 factors on instruction
// sets where oneDNN would allocate its scratch on the heap. b is packed first, as fp32, and so is
// a, unless it is fp32 with contiguous rows, which are read in place. So every combination of
// transposes and types uses the same inner loop.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// Rows of a and columns of b whose sums the inner loop holds in registers: 6 x 16 sums take 12 of
// AVX2's 16 registers.
inline constexpr int64_t kGemmRows = 6;
inline constexpr int64_t kGemmColumns = 16;

// A matrix in memory; strides count elements.
struct GemmSource {
  const void* data;
  int64_t row_stride;
  int64_t column_stride;
};

// The destination of sums: c = alpha * sum + addend. A null addend is zero; the addend may be c
// itself.
struct GemmDestination {
  float* c;
  int64_t c_stride;
  const float* addend;
  int64_t addend_stride;
  float alpha;
};

// Rows of a in fp32 as the inner loop reads them: in a packed block, or in the matrix itself.
struct GemmRows {
  const float* data;
  int64_t row_stride;
  int64_t step_stride;   // elements from one k to the next
  int64_t panel_stride;  // elements from one panel of kGemmRows rows to the next
};

struct GemmKernels {
  // Pack (rows, k) of a as panels of kGemmRows rows, and (k, columns) of b as panels of
  // kGemmColumns columns, each k by k. Missing rows and columns are zeros. Null for bf16.
  void (*pack_a[kElements])(const GemmSource& a, int64_t rows, int64_t k, float* packed);
  void (*pack_b[kElements])(const GemmSource& b, int64_t k, int64_t columns, float* packed);
  // The product of rows with a packed block of b. Does not read missing rows.
  void (*block)(const GemmRows& a, const float* packed_b, const int64_t (&rows_columns_k)[3],
                const GemmDestination& destination);
};

}  // namespace snug::backends::cpu
