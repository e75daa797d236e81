#include "backends/cpu/kernels/gemm.h"

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

using Tile = float[kGemmRows][kGemmColumns];

// Eight floats: sixteen at once do not stay in registers where there is no AVX-512.
using Eight = float __attribute__((vector_size(32)));

SNUG_INLINE Eight load_eight(const float* x) {
  Eight v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

// sums = a b over k, in order of k.
SNUG_INLINE void multiply_tile(const float* a, const float* b, int64_t k, Tile& sums) {
  Eight low[kGemmRows] = {};
  Eight high[kGemmRows] = {};
  for (int64_t p = 0; p < k; ++p) {
    const Eight b_low = load_eight(b);
    const Eight b_high = load_eight(b + 8);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kGemmRows; ++i) {
      low[i] += a[i] * b_low;
      high[i] += a[i] * b_high;
    }
    a += kGemmRows;
    b += kGemmColumns;
  }
  for (int64_t i = 0; i < kGemmRows; ++i) {
    __builtin_memcpy(&sums[i][0], &low[i], sizeof(Eight));
    __builtin_memcpy(&sums[i][8], &high[i], sizeof(Eight));
  }
}

void store_tile(const Tile& sums, int64_t rows, int64_t columns, const GemmDestination& to) {
  for (int64_t i = 0; i < rows; ++i) {
    float* c = to.c + i * to.c_stride;
    if (to.addend == nullptr) {
      for (int64_t j = 0; j < columns; ++j) c[j] = to.alpha * sums[i][j];
      continue;
    }
    const float* addend = to.addend + i * to.addend_stride;
    for (int64_t j = 0; j < columns; ++j) c[j] = to.alpha * sums[i][j] + addend[j];
  }
}

// Panels of `width` lanes: lane i of step p is element (first + i, p) of a matrix seen with these
// strides.
SNUG_INLINE void pack_panels(const GemmSource& source, int64_t lanes, int64_t k, int64_t width,
                             float* packed) {
  for (int64_t first = 0; first < lanes; first += width) {
    const int64_t present = lanes - first < width ? lanes - first : width;
    const float* from = source.data + first * source.row_stride;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t i = 0; i < present; ++i)
        packed[i] = from[i * source.row_stride + p * source.column_stride];
      for (int64_t i = present; i < width; ++i) packed[i] = 0.0F;
      packed += width;
    }
  }
}

void pack_a(const GemmSource& a, int64_t rows, int64_t k, float* packed) {
  pack_panels(a, rows, k, kGemmRows, packed);
}

void pack_b(const GemmSource& b, int64_t k, int64_t columns, float* packed) {
  const GemmSource transposed = {b.data, b.column_stride, b.row_stride};
  pack_panels(transposed, columns, k, kGemmColumns, packed);
}

void block(const float* packed_a, const float* packed_b, const int64_t (&rows_columns_k)[3],
           const GemmDestination& destination) {
  const auto [rows, columns, k] = rows_columns_k;
  for (int64_t j = 0; j < columns; j += kGemmColumns)
    for (int64_t i = 0; i < rows; i += kGemmRows) {
      Tile sums;
      multiply_tile(packed_a + i * k, packed_b + j * k, k, sums);
      GemmDestination to = destination;
      to.c += i * to.c_stride + j;
      if (to.addend != nullptr) to.addend += i * to.addend_stride + j;
      store_tile(sums, rows - i < kGemmRows ? rows - i : kGemmRows,
                 columns - j < kGemmColumns ? columns - j : kGemmColumns, to);
    }
}

}  // namespace

extern const GemmKernels kGemmKernels;
const GemmKernels kGemmKernels = {.pack_a = pack_a, .pack_b = pack_b, .block = block};

}  // namespace snug::backends::cpu::SNUG_ISA
