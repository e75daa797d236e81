// Dot products of rows of any two types, in f32, for kinds that work on rows of experts.
#pragma once

#include <algorithm>
#include <array>

#include "backends/cpu/kernels.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {

// Columns that are processed at once: sums of so many stay in the first-level cache.
inline constexpr int64_t kRowPiece = 1024;

// The number of rows in a task when a row has `columns` columns.
inline int64_t expert_rows_per_task(int64_t columns) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, columns));
}

// Uses sixteen sums, which the compiler keeps in one or two registers.
inline float dot_product(const float* a, const float* b, int64_t n) {
  constexpr int64_t kSums = 16;
  std::array<float, kSums> sums{};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t lane = 0; lane < kSums; ++lane)
      sums[static_cast<size_t>(lane)] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float lane : sums) sum += lane;
  return sum;
}

// A row's address and element type.
struct TypedRow {
  const std::byte* data;
  Element element;
};

// The dot product of n elements.
inline float dot_rows(const ElementwiseKernels& kernels, const TypedRow& a, const TypedRow& b,
                      int64_t n) {
  alignas(64) std::array<float, kRowPiece> left;
  alignas(64) std::array<float, kRowPiece> right;
  const auto at = [](const TypedRow& row, int64_t column) {
    return row.data + column * (row.element == kF32 ? 4 : 2);
  };
  float sum = 0;
  for (int64_t begin = 0; begin < n; begin += kRowPiece) {
    const int64_t count = std::min(kRowPiece, n - begin);
    kernels.convert[a.element][kF32](at(a, begin), left.data(), count);
    kernels.convert[b.element][kF32](at(b, begin), right.data(), count);
    sum += dot_product(left.data(), right.data(), count);
  }
  return sum;
}

}  // namespace snug::backends::cpu
