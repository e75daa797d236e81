#include "backends/cpu/recurrence/kernels/causal_convolution.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kMostWidth = 8;  // program::kMostConvolutionWidth

SNUG_INLINE Float16Lanes sigmoid(Float16Lanes x) { return reciprocal(1.0F + exp(-x)); }

// The filters of sixteen columns from `column` on: taps[k] is that of the token k before.
template <typename W>
SNUG_INLINE void load_filters(const CausalConvolutionRun& run, int64_t column,
                              Float16Lanes (&taps)[kMostWidth]) {
  const W* w = static_cast<const W*>(run.w);
  const int64_t columns = smaller_of(kLanes, run.columns - column);
  for (int64_t k = 0; k < run.width; ++k) {
    float lane[kLanes] = {};
    for (int64_t i = 0; i < columns; ++i) {
      const W* element = w + (column + i) * run.width + run.width - 1 - k;
      lane[i] = load_partial(element, 1, 0.0F)[0];
    }
    taps[k] = load(lane);
  }
}

template <typename X, typename Lanes>
SNUG_INLINE Float16Lanes convolved(const CausalConvolutionRun& run, int64_t row, int64_t column,
                                   const Float16Lanes (&taps)[kMostWidth], Lanes lanes) {
  const X* x = static_cast<const X*>(run.x) + column;
  Float16Lanes sum = splat(0.0F);
  for (int64_t k = 0; k < run.taps[row]; ++k)
    sum = multiply_add(taps[k], load(x + (row - k) * run.x_stride, lanes), sum);
  return sum;
}

template <typename X, typename W>
void forward(const CausalConvolutionRun& run) {
  for_each_lanes(run.columns, [&](int64_t column, auto lanes) {
    Float16Lanes taps[kMostWidth];
    load_filters<W>(run, column, taps);
    X* y = static_cast<X*>(run.y) + column;
    for (int64_t row = run.begin; row < run.end; ++row) {
      const Float16Lanes sum = convolved<X>(run, row, column, taps, lanes);
      store(y + row * run.y_stride, run.plain ? sum : sum * sigmoid(sum), lanes);
    }
  });
}

// The gradient of what was convolved at a row, before silu; zeros where it is in no segment.
template <typename X, typename Lanes>
SNUG_INLINE Float16Lanes slope_at(const CausalConvolutionGradRun& grad, int64_t row, int64_t column,
                                  const Float16Lanes (&taps)[kMostWidth], Lanes lanes) {
  const X* dy = static_cast<const X*>(grad.dy) + column;
  if (grad.forward.taps[row] == 0) return splat(0.0F);
  if (grad.forward.plain) return load(dy + row * grad.dy_stride, lanes);
  const Float16Lanes sum = convolved<X>(grad.forward, row, column, taps, lanes);
  const Float16Lanes s = sigmoid(sum);
  return load(dy + row * grad.dy_stride, lanes) * s * (1.0F + sum * (1.0F - s));
}

// Goes through the rows with the slopes of a row and of the width - 1 after it: slopes[k] is that
// of row + k.
template <typename X, typename W>
void backward(const CausalConvolutionGradRun& grad) {
  const CausalConvolutionRun& run = grad.forward;
  for_each_lanes(run.columns, [&](int64_t column, auto lanes) {
    Float16Lanes taps[kMostWidth];
    load_filters<W>(run, column, taps);
    Float16Lanes slopes[kMostWidth] = {};
    Float16Lanes sums[kMostWidth] = {};
    const auto slope_of = [&](int64_t row) {
      return row < grad.rows ? slope_at<X>(grad, row, column, taps, lanes) : splat(0.0F);
    };
    for (int64_t k = 1; k < run.width; ++k) slopes[k] = slope_of(run.begin + k - 1);
    const X* x = static_cast<const X*>(run.x) + column;
    X* dx = static_cast<X*>(run.y) + column;
    for (int64_t row = run.begin; row < run.end; ++row) {
      for (int64_t k = 1; k < run.width; ++k) slopes[k - 1] = slopes[k];
      slopes[run.width - 1] = slope_of(row + run.width - 1);
      Float16Lanes sum = splat(0.0F);
      for (int64_t k = 0; k < run.width; ++k)
        if (row + k < grad.rows && run.taps[row + k] > k)
          sum = multiply_add(taps[k], slopes[k], sum);
      for (int64_t k = 0; grad.dw != nullptr && k < run.taps[row]; ++k)
        sums[k] = multiply_add(slopes[0], load(x + (row - k) * run.x_stride, lanes), sums[k]);
      store(dx + row * run.y_stride, sum, lanes);
    }
    if (grad.dw == nullptr) return;
    const int64_t columns = smaller_of(kLanes, run.columns - column);
    for (int64_t k = 0; k < run.width; ++k)
      for (int64_t i = 0; i < columns; ++i)
        grad.dw[(column + i) * run.width + run.width - 1 - k] = sums[k][i];
  });
}

}  // namespace

extern const CausalConvolutionKernels kCausalConvolutionKernels;
const CausalConvolutionKernels kCausalConvolutionKernels = {
    .forward = SNUG_BY_TWO_ELEMENTS(forward), .backward = SNUG_BY_TWO_ELEMENTS(backward)};

}  // namespace snug::backends::cpu::SNUG_ISA
