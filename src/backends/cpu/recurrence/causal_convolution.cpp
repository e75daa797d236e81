#include "program/kinds/recurrence/causal_convolution.h"

#include <algorithm>
#include <cstring>

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

// Bytes of a thread's rows that go on with a sequence (GrowingRows): a window of x and one of y,
// in at most four bytes an element.
int64_t window_bytes(int64_t width) {
  return whole_lines(2 * 2 * (width - 1) * kConvolvedColumns * int64_t{sizeof(float)});
}

int64_t workspace_bytes(const CausalConvolution& convolution, const program::OperationView& view,
                        const CpuContext& context) {
  const int64_t taps = taps_bytes(view[CausalConvolution::kX].shape[0]);
  if (!convolution.cached) return taps;
  const int64_t width = view[CausalConvolution::kW].shape[2];
  return taps + taps_bytes(2 * width) + context.threads * window_bytes(width);
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

// The first rows of segments that go on with a sequence: they see rows that the sequence's place
// keeps. A window is what is kept, and the segment's first rows after it.
class GrowingRows {
 public:
  GrowingRows(const Invocation& invocation, const CpuContext& context, std::byte* workspace,
              bool plain)
      : x_(rows_of(invocation[CausalConvolution::kX])),
        w_(rows_of(invocation[CausalConvolution::kW])),
        y_(rows_of(invocation[CausalConvolution::kY])),
        state_(rows_of(invocation[CausalConvolution::kState])),
        bounds_(integers_of(invocation[CausalConvolution::kBounds])),
        slots_(integers_of(invocation[CausalConvolution::kSlots])),
        segments_(invocation[CausalConvolution::kBounds].shape[0]),
        kept_(w_.columns - 1),
        plain_(plain),
        forward_(context.kernels.causal_convolution->forward[x_.element][w_.element]),
        taps_(reinterpret_cast<int32_t*>(workspace)),
        windows_(workspace + taps_bytes(2 * w_.columns)) {
    std::fill_n(taps_, 2 * w_.columns, static_cast<int32_t>(w_.columns));
  }

  void run() const {
    const int64_t across = ceil_div(x_.columns, kConvolvedColumns);
    parallel_for(segments_ * across, [&](int64_t task) {
      const int64_t segment = task / across;
      if (bounds_[2 * segment] == bounds_[2 * segment + 1]) return;
      const int64_t column = task % across * kConvolvedColumns;
      this->run(segment, column, std::min(kConvolvedColumns, x_.columns - column));
    });
  }

 private:
  void run(int64_t segment, int64_t column, int64_t columns) const {
    const int64_t begin = bounds_[2 * segment];
    const int64_t tokens = bounds_[2 * segment + 1] - begin;
    const int64_t rows = std::min(kept_, tokens);  // that see what is kept
    const auto bytes = static_cast<size_t>(columns * x_.element_bytes());
    std::byte* window = windows_ + current_thread() * window_bytes(w_.columns);
    const int64_t stride = kConvolvedColumns * x_.element_bytes();
    const auto row_of = [&](int64_t row) { return window + row * stride; };
    const auto kept_row = [&](int64_t row) {
      return state_.at(slots_[2 * segment], row * x_.columns + column);
    };
    for (int64_t row = 0; row < kept_; ++row) {
      if (slots_[2 * segment + 1] > 0)
        std::memcpy(row_of(row), kept_row(row), bytes);
      else
        std::memset(row_of(row), 0, bytes);
    }
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(row_of(kept_ + row), x_.at(begin + row, column), bytes);
    std::byte* given = row_of(2 * kept_);
    forward_({.x = window,
              .w = w_.at(column),
              .y = given,
              .taps = taps_,
              .x_stride = kConvolvedColumns,
              .y_stride = kConvolvedColumns,
              .begin = kept_,
              .end = kept_ + rows,
              .columns = columns,
              .width = w_.columns,
              .plain = plain_});
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(y_.at(begin + row, column), given + (kept_ + row) * stride, bytes);
    // The last rows of what was kept and came now.
    for (int64_t row = 0; row < kept_; ++row) {
      const int64_t at = tokens - kept_ + row;  // in the segment
      std::memcpy(kept_row(row), at >= 0 ? x_.at(begin + at, column) : row_of(kept_ + at), bytes);
    }
  }

  Rows x_, w_, y_, state_;
  const int32_t* bounds_;
  const int32_t* slots_;
  int64_t segments_;
  int64_t kept_;  // rows that a place keeps
  bool plain_;
  void (*forward_)(const CausalConvolutionRun& run);
  int32_t* taps_;
  std::byte* windows_;
};

void run(const CausalConvolution& convolution, const Invocation& invocation, CpuContext& context) {
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
    block.plain = convolution.plain;
    forward(block);
  });
  if (!convolution.cached) return;
  GrowingRows(invocation, context, invocation.workspace.data + taps_bytes(x.rows),
              convolution.plain)
      .run();
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
    block.forward.plain = grad.plain;
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
