// Products of a few rows with a matrix that is read once, row by row: y = alpha x w^T + addend, for
// decoding. Reading w from memory bounds their speed.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// The most rows for any type and instruction set, and for bf16 where instructions multiply pairs of
// bf16.
inline constexpr int64_t kFewRows = 4;
inline constexpr int64_t kFewRowsOfPairs = 16;

// Rows of x (rows, k) and outputs [begin, end) of w (n, k): both have contiguous rows and the same
// element type. Strides count elements.
struct FewRowsProduct {
  const void* x;
  int64_t x_stride;
  int64_t rows;  // at most kFewRows, or kFewRowsOfPairs
  const void* w;
  int64_t w_stride;
  int64_t k;
  int64_t begin;
  int64_t end;
  float* sums;  // (rows, end - begin)
};

struct FewRowsKernels {
  // Sums in fp32, in an order that depends only on k.
  void (*multiply[kElements])(const FewRowsProduct& product);
};

}  // namespace snug::backends::cpu
