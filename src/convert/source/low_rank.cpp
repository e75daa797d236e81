// A tile of two rows and 32 columns is summed in registers, over all of r; what is left of rows and
// columns is summed one by one.
#include "convert/source/low_rank.h"

#include <cstring>

namespace snug::convert {
namespace {

using Lanes = float __attribute__((vector_size(32)));
constexpr int64_t kLanes = 8;
constexpr int64_t kTileVectors = 4;
constexpr int64_t kTileColumns = kLanes * kTileVectors;

// kRows rows of a tile, from row `row` and column `column` on.
template <int64_t kRows>
[[gnu::always_inline]] inline void add_tile(const LowRank& product, int64_t row, int64_t column,
                                            float* values) {
  Lanes sums[kRows][kTileVectors] = {};
  for (int64_t k = 0; k < product.r; ++k) {
    const float* right = product.right + k * product.columns + column;
    for (int64_t v = 0; v < kTileVectors; ++v) {
      Lanes lanes;
      std::memcpy(&lanes, right + v * kLanes, sizeof(lanes));
      for (int64_t i = 0; i < kRows; ++i)
        sums[i][v] += lanes * product.left[(row + i) * product.r + k];
    }
  }
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t v = 0; v < kTileVectors; ++v) {
      float* to = values + (row + i) * product.columns + column + v * kLanes;
      Lanes lanes;
      std::memcpy(&lanes, to, sizeof(lanes));
      lanes += sums[i][v] * product.scale;
      std::memcpy(to, &lanes, sizeof(lanes));
    }
}

[[gnu::always_inline]] inline void add_rest(const LowRank& product, int64_t column, float* values) {
  for (int64_t row = 0; row < product.rows; ++row)
    for (int64_t j = column; j < product.columns; ++j) {
      float sum = 0.0F;
      for (int64_t k = 0; k < product.r; ++k)
        sum += product.left[row * product.r + k] * product.right[k * product.columns + j];
      values[row * product.columns + j] += sum * product.scale;
    }
}

[[gnu::always_inline]] inline void add_all(const LowRank& product, float* values) {
  int64_t column = 0;
  for (; column + kTileColumns <= product.columns; column += kTileColumns) {
    int64_t row = 0;
    for (; row + 2 <= product.rows; row += 2) add_tile<2>(product, row, column, values);
    for (; row < product.rows; ++row) add_tile<1>(product, row, column, values);
  }
  add_rest(product, column, values);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void add_avx2(const LowRank& product, float* values) {
  add_all(product, values);
}
#endif

}  // namespace

void add_low_rank(const LowRank& product, float* values) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return add_avx2(product, values);
#endif
  add_all(product, values);
}

}  // namespace snug::convert
