// Products of a chunk's matrices for the gated delta rule, for kernel files only. All are fp32 and
// row-major, without gaps between rows, and have sizes of whole blocks. Of a triangular matrix
// (rows, rows) only the blocks on and below the diagonal are made and read.
#pragma once

#include "backends/cpu/product/kernels/block_packing.h"
#include "backends/cpu/recurrence/kernels/gated_delta_rule.h"

namespace snug::backends::cpu::SNUG_ISA {

// c (m, n) [+]= a (m, k) b (k, n), without gaps between rows. kTransposed: a is (k, m).
struct ProductSizes {
  int64_t m, n, k;
};
template <bool kTransposed = false>
static void multiply(const float* a, const float* b, float* c, const ProductSizes& sizes,
                     bool accumulate = false) {
  multiply_blocks<kTransposed>(BlockProduct<float>{.a = a,
                                                   .a_stride = kTransposed ? sizes.m : sizes.k,
                                                   .b = b,
                                                   .b_stride = sizes.n,
                                                   .c = c,
                                                   .c_stride = sizes.n,
                                                   .m = sizes.m,
                                                   .n = sizes.n,
                                                   .k = sizes.k,
                                                   .accumulate = accumulate});
}

// The columns of row i in the blocks on and below the diagonal.
SNUG_INLINE int64_t lower_columns(int64_t i) { return i / kDeltaBlock * kDeltaBlock + kDeltaBlock; }

// c (rows, rows) = x (rows, k) y (k, rows), on and below the diagonal.
static void multiply_to_lower(const float* x, const float* y, float* c, int64_t rows, int64_t k) {
  for (int64_t i = 0; i < rows; i += kDeltaBlock)
    multiply_blocks(BlockProduct<float>{.a = x + i * k,
                                        .a_stride = k,
                                        .b = y,
                                        .b_stride = rows,
                                        .c = c + i * rows,
                                        .c_stride = rows,
                                        .m = kDeltaBlock,
                                        .n = lower_columns(i),
                                        .k = k,
                                        .accumulate = false});
}

// Rows of a triangle that are multiplied or solved at once: two registers of each fit.
constexpr int64_t kTriangleRows = kRegisterLanes == 16 ? 8 : 4;

// c (rows, n) += l x for a lower triangular l (rows, rows), or its transpose, and x (rows, n).
template <bool kTransposed>
static void add_lower_product(const float* l, const float* x, float* c, int64_t rows, int64_t n) {
  for (int64_t j = 0; j < n; j += 2 * kRegisterLanes)
    for (int64_t i = 0; i < rows; i += kTriangleRows) {
      const int64_t first = kTransposed ? i : 0;
      const int64_t end = kTransposed ? rows : i + kTriangleRows;
      multiply_tile<kTriangleRows, kTransposed>(
          BlockProduct<float>{.a = kTransposed ? l + first * rows + i : l + i * rows,
                              .a_stride = rows,
                              .b = x + first * n,
                              .b_stride = n,
                              .c = c + i * n,
                              .c_stride = n,
                              .m = kTriangleRows,
                              .n = n,
                              .k = end - first,
                              .accumulate = true},
          0, j);
    }
}

// y (columns, rows) = the transpose of x (rows, columns).
static void transpose(const float* x, int64_t rows, int64_t columns, float* y) {
  transpose_units(RowBlock<const float>{x, columns}, rows, columns, RowBlock<float>{y, rows});
}

// n is a multiple of a block.
SNUG_INLINE float dot(const float* a, const float* b, int64_t n) {
  Float16Lanes sum[2] = {};
  for (int64_t i = 0; i < n; i += 2 * kLanes)
    for (int64_t v = 0; v < 2; ++v)
      sum[v] = multiply_add(load(a + i + v * kLanes), load(b + i + v * kLanes), sum[v]);
  return reduce_add(sum[0] + sum[1]);
}

// y = factor x + addend; y may be either.
SNUG_INLINE void scale_add(const float* x, float factor, const float* addend, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes)
    store(y + i, multiply_add(load(x + i), splat(factor), load(addend + i)));
}
SNUG_INLINE void scale_row(const float* x, float factor, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) store(y + i, load(x + i) * factor);
}

// Solves rows i to i + kTriangleRows in two registers of columns: adds the product with the rows
// that are known, and then the rows' own triangle.
template <bool kTransposed>
SNUG_INLINE void solve_tile(const float* minus_a, int64_t rows, float* x, int64_t stride,
                            int64_t i) {
  const auto factor = [=](int64_t row, int64_t known) {
    return kTransposed ? minus_a[known * rows + row] : minus_a[row * rows + known];
  };
  Register left[kTriangleRows];
  Register right[kTriangleRows];
  for (int64_t row = 0; row < kTriangleRows; ++row) {
    left[row] = load_register(x + (i + row) * stride);
    right[row] = load_register(x + (i + row) * stride + kRegisterLanes);
  }
  const int64_t end = kTransposed ? rows : i;
  for (int64_t known = kTransposed ? i + kTriangleRows : 0; known < end; ++known) {
    const Register known_left = load_register(x + known * stride);
    const Register known_right = load_register(x + known * stride + kRegisterLanes);
#pragma GCC unroll 8
    for (int64_t row = 0; row < kTriangleRows; ++row) {
      left[row] += factor(i + row, known) * known_left;
      right[row] += factor(i + row, known) * known_right;
    }
  }
#pragma GCC unroll 8
  for (int64_t step = 0; step < kTriangleRows; ++step) {
    const int64_t known = kTransposed ? kTriangleRows - 1 - step : step;
#pragma GCC unroll 8
    for (int64_t row = 0; row < kTriangleRows; ++row) {
      if (kTransposed ? row >= known : row <= known) continue;
      left[row] += factor(i + row, i + known) * left[known];
      right[row] += factor(i + row, i + known) * right[known];
    }
  }
  for (int64_t row = 0; row < kTriangleRows; ++row) {
    __builtin_memcpy(x + (i + row) * stride, &left[row], sizeof(Register));
    __builtin_memcpy(x + (i + row) * stride + kRegisterLanes, &right[row], sizeof(Register));
  }
}

// x (rows, n) = (I + A)^-1 x for a strictly lower triangular A, of which -A is given, from the
// first row on; or with the transpose of A, from the last row on.
template <bool kTransposed>
static void solve(const float* minus_a, int64_t rows, float* x, int64_t n) {
  for (int64_t column = 0; column < n; column += 2 * kRegisterLanes)
    for (int64_t step = 0; step < rows; step += kTriangleRows)
      solve_tile<kTransposed>(minus_a, rows, x + column, n,
                              kTransposed ? rows - kTriangleRows - step : step);
}

}  // namespace snug::backends::cpu::SNUG_ISA
