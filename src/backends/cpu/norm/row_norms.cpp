// A thread takes a few rows of the weight, one tile of columns at a time: it converts the tile to
// f32, transposes it where the weight is stored transposed, adds the adapter's product in registers
// and sums the squares. No tile is written back, so there is no temporary the size of the weight.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "program/kinds/norm/row_norms.h"

namespace snug::backends::cpu {
namespace {

using program::RowNorms;

using NormTile = std::array<float, static_cast<size_t>(kNormRows* kNormColumns)>;

// The floats per thread for the scaled f32 factors of its rows.
int64_t factor_stride(int64_t rank) { return round_up(kNormRows * rank, 16); }

int64_t workspace_bytes(const RowNorms& row_norms, const program::OperationView& view,
                        const CpuContext& context) {
  if (!row_norms.low_rank) return 0;
  return context.threads * factor_stride(view[RowNorms::kA].shape.rows()) * int64_t{sizeof(float)};
}

// Rows [row, row + rows) and columns [column, column + n) of the weight.
struct TileBounds {
  int64_t row, rows, column, n;
};

void fill_tile(const ElementwiseKernels& kernels, const Rows& w, bool transposed,
               const TileBounds& at, NormTile& tile) {
  const auto convert = kernels.convert[w.element][kF32];
  if (!transposed) {
    for (int64_t r = 0; r < at.rows; ++r)
      convert(w.at(at.row + r, at.column), tile.data() + r * kNormColumns, at.n);
    return;
  }
  std::array<float, static_cast<size_t>(kNormRows)> column;
  for (int64_t i = 0; i < at.n; ++i) {
    convert(w.at(at.column + i, at.row), column.data(), at.rows);
    for (int64_t r = 0; r < at.rows; ++r)
      tile[static_cast<size_t>(r * kNormColumns + i)] = column[static_cast<size_t>(r)];
  }
}

void run(const RowNorms& row_norms, const Invocation& invocation, CpuContext& context) {
  const Rows w = rows_of(invocation[RowNorms::kW]);
  const Rows a = row_norms.low_rank ? rows_of(invocation[RowNorms::kA]) : Rows{};
  const Rows b = row_norms.low_rank ? rows_of(invocation[RowNorms::kB]) : Rows{};
  auto* norms = invocation[RowNorms::kNorms].as<float>();
  const int64_t rank = a.rows;
  const int64_t out = row_norms.transposed ? w.columns : w.rows;
  const int64_t in = row_norms.transposed ? w.rows : w.columns;
  const ElementwiseKernels& elementwise = *context.kernels.elementwise;
  const auto add_squares = context.kernels.row_norms->add_squares[a.element];
  parallel_ranges(out, kNormRows, [&](int64_t begin, int64_t end) {
    float* factors = nullptr;
    if (row_norms.low_rank) {
      factors = invocation.workspace.as<float>() + current_thread() * factor_stride(rank);
      for (int64_t row = begin; row < end; ++row)
        elementwise.scale[b.element][kF32](b.at(row), factors + (row - begin) * rank, rank,
                                           row_norms.alpha);
    }
    alignas(64) NormTile tile;
    std::array<float, static_cast<size_t>(kNormRows)> squares{};
    for (int64_t column = 0; column < in; column += kNormColumns) {
      const TileBounds at{begin, end - begin, column, std::min(kNormColumns, in - column)};
      fill_tile(elementwise, w, row_norms.transposed, at, tile);
      add_squares({.w = tile.data(),
                   .a = row_norms.low_rank ? a.at(0, column) : nullptr,
                   .a_stride = a.stride,
                   .b = factors,
                   .rank = rank,
                   .rows = at.rows,
                   .n = at.n,
                   .squares = squares.data()});
    }
    for (int64_t row = begin; row < end; ++row)
      norms[row] = std::sqrt(squares[static_cast<size_t>(row - begin)]);
  });
}

}  // namespace

SNUG_CPU_KIND(RowNorms, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
