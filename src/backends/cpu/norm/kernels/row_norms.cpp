#include "backends/cpu/norm/kernels/row_norms.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// Rows that share the loads of a.
constexpr int64_t kTogether = 4;

template <int64_t kRows, typename A>
SNUG_INLINE void add_row_squares(const NormTile& tile, int64_t row) {
  const A* a = static_cast<const A*>(tile.a);
  const float* w = tile.w + row * kNormColumns;
  const float* b = tile.b + row * tile.rank;
  Float16Lanes squares[kRows] = {};
  for_each_lanes(tile.n, [&](int64_t i, auto part) {
    Float16Lanes sum[kRows];
    for (int64_t r = 0; r < kRows; ++r) sum[r] = load(w + r * kNormColumns + i, part);
    for (int64_t k = 0; k < tile.rank; ++k) {
      const Float16Lanes lanes = load(a + k * tile.a_stride + i, part);
      for (int64_t r = 0; r < kRows; ++r)
        sum[r] = multiply_add(lanes, splat(b[r * tile.rank + k]), sum[r]);
    }
    for (int64_t r = 0; r < kRows; ++r) squares[r] = multiply_add(sum[r], sum[r], squares[r]);
  });
  for (int64_t r = 0; r < kRows; ++r) tile.squares[row + r] += reduce_add(squares[r]);
}

template <typename A>
void add_squares(const NormTile& tile) {
  int64_t row = 0;
  for (; row + kTogether <= tile.rows; row += kTogether) add_row_squares<kTogether, A>(tile, row);
  for (; row < tile.rows; ++row) add_row_squares<1, A>(tile, row);
}

}  // namespace

extern const RowNormsKernels kRowNormsKernels;
const RowNormsKernels kRowNormsKernels = {
    .add_squares = SNUG_BY_ELEMENT(add_squares),
};

}  // namespace snug::backends::cpu::SNUG_ISA
