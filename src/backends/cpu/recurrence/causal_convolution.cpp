#include "program/kinds/recurrence/causal_convolution.h"

#include <algorithm>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

using program::CausalConvolution;
using program::CausalConvolutionGrad;

// Columns of a task: as many as fit into whole cache lines, and leave enough tasks.
constexpr int64_t kConvolvedColumns = 256;

int64_t taps_bytes(int64_t rows) { return whole_lines(rows * int64_t{sizeof(int32_t)}); }

// Says for each row how many tokens the filter sees, in the workspace.
void count_taps(const Buffer& bounds, int64_t rows, int64_t width, int32_t* taps) {
  const int32_t* pairs = integers_of(bounds);
  std::fill_n(taps, rows, 0);
  for (int64_t segment = 0; segment < bounds.shape[0]; ++segment) {
    const int32_t begin = pairs[2 * segment];
    for (int32_t row = begin; row < pairs[2 * segment + 1]; ++row)
      taps[row] = std::min(static_cast<int32_t>(width), row - begin + 1);
  }
}

// Calls f(first row, end, first column, columns) for blocks of rows and columns on all threads.
template <typename F>
void for_each_block(int64_t rows, int64_t columns, F&& f) {
  const int64_t block_rows = reduction_block_rows(rows);
  const int64_t across = ceil_div(columns, kConvolvedColumns);
  parallel_for(reduction_blocks(rows) * across, [&](int64_t task) {
    const int64_t row = task / across * block_rows;
    const int64_t column = task % across * kConvolvedColumns;
    f(row, std::min(rows, row + block_rows), column, std::min(kConvolvedColumns, columns - column));
  });
}

bool supports(const CausalConvolution&, const program::OperationView& view, const CpuContext&) {
  return view[CausalConvolution::kX].dtype == view[CausalConvolution::kY].dtype;
}

int64_t workspace_bytes(const CausalConvolution&, const program::OperationView& view,
                        const CpuContext&) {
  return taps_bytes(view[CausalConvolution::kX].shape[0]);
}

CausalConvolutionRun block_of(const Rows& x, const Rows& w, const Rows& y, const int32_t* taps,
                              int64_t column) {
  return {.x = x.at(0, column),
          .w = w.at(column),
          .y = y.at(0, column),
          .taps = taps,
          .x_stride = x.stride,
          .y_stride = y.stride,
          .width = w.columns};
}

void run(const CausalConvolution&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[CausalConvolution::kX]);
  const Rows w = rows_of(invocation[CausalConvolution::kW]);
  const Rows y = rows_of(invocation[CausalConvolution::kY]);
  auto* taps = invocation.workspace.as<int32_t>();
  count_taps(invocation[CausalConvolution::kBounds], x.rows, w.columns, taps);
  const auto forward = context.kernels.causal_convolution->forward[x.element][w.element];
  for_each_block(x.rows, x.columns, [&](int64_t begin, int64_t end, int64_t column, int64_t n) {
    CausalConvolutionRun block = block_of(x, w, y, taps, column);
    block.begin = begin;
    block.end = end;
    block.columns = n;
    forward(block);
  });
}

bool supports(const CausalConvolutionGrad&, const program::OperationView& view, const CpuContext&) {
  return view[CausalConvolutionGrad::kX].dtype == view[CausalConvolutionGrad::kDY].dtype &&
         view[CausalConvolutionGrad::kX].dtype == view[CausalConvolutionGrad::kDX].dtype;
}

int64_t workspace_bytes(const CausalConvolutionGrad& grad, const program::OperationView& view,
                        const CpuContext&) {
  const int64_t rows = view[CausalConvolutionGrad::kX].shape[0];
  const int64_t weights = view[CausalConvolutionGrad::kW].shape.elements();
  return taps_bytes(rows) + (grad.weight_gradient ? reduction_bytes(rows, weights) : 0);
}

void run(const CausalConvolutionGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[CausalConvolutionGrad::kDY]);
  const Rows x = rows_of(invocation[CausalConvolutionGrad::kX]);
  const Rows w = rows_of(invocation[CausalConvolutionGrad::kW]);
  const Rows dx = rows_of(invocation[CausalConvolutionGrad::kDX]);
  auto* taps = invocation.workspace.as<int32_t>();
  float* partials = invocation.workspace.as<float>() + taps_bytes(x.rows) / int64_t{sizeof(float)};
  const int64_t weights = w.rows * w.columns;
  count_taps(invocation[CausalConvolutionGrad::kBounds], x.rows, w.columns, taps);
  const auto backward = context.kernels.causal_convolution->backward[x.element][w.element];
  for_each_block(x.rows, x.columns, [&](int64_t begin, int64_t end, int64_t column, int64_t n) {
    CausalConvolutionGradRun block{.forward = block_of(x, w, dx, taps, column),
                                   .dy = dy.at(0, column),
                                   .dy_stride = dy.stride,
                                   .rows = x.rows};
    block.forward.begin = begin;
    block.forward.end = end;
    block.forward.columns = n;
    if (grad.weight_gradient)
      block.dw = partials + begin / reduction_block_rows(x.rows) * reduction_stride(weights) +
                 column * w.columns;
    backward(block);
  });
  if (grad.weight_gradient)
    add_reduction_blocks(context.kernels, partials, reduction_blocks(x.rows),
                         one_row_of(invocation[CausalConvolutionGrad::kDW]), false);
}

}  // namespace

SNUG_CPU_KIND(CausalConvolution, .supports = supports, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(CausalConvolutionGrad, .supports = supports, .workspace_bytes = workspace_bytes);

}  // namespace snug::backends::cpu
