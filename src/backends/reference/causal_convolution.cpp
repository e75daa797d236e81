#include <algorithm>
#include <cmath>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/recurrence/causal_convolution.h"

namespace snug::backends::reference {
namespace {

using program::CausalConvolution;
using program::CausalConvolutionGrad;

// Calls f(begin, end) for each segment that has tokens.
template <typename F>
void for_each_segment(const Buffer& buffer, F&& f) {
  const Integers bounds(buffer);
  for (int64_t i = 0; i < bounds.count(); i += 2)
    if (bounds[i] < bounds[i + 1]) f(int64_t{bounds[i]}, int64_t{bounds[i + 1]});
}

template <typename T>
void clear(const Floats<T>& x) {
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, T{0});
}

// What is convolved of column c at token t of a segment that begins at `begin`.
template <typename T>
T convolved(const Floats<T>& x, const Floats<T>& w, int64_t begin, int64_t t, int64_t c) {
  T sum = 0;
  for (int64_t k = 0; k < std::min(w.columns(), t - begin + 1); ++k)
    sum += w.at(c, w.columns() - 1 - k) * x.at(t - k, c);
  return sum;
}

template <typename T>
void run(const CausalConvolution&, const Invocation& invocation) {
  const Floats<T> x(invocation[CausalConvolution::kX]);
  const Floats<T> w(invocation[CausalConvolution::kW]);
  const Floats<T> y(invocation[CausalConvolution::kY]);
  clear(y);
  for_each_segment(invocation[CausalConvolution::kBounds], [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t c = 0; c < x.columns(); ++c) {
        const T sum = convolved(x, w, begin, t, c);
        y.set(t, c, sum / (T{1} + std::exp(-sum)));
      }
  });
}

// One column at a time. Scratch: the slopes of the column's sums, and its gradients of x and w.
template <typename T>
void run(const CausalConvolutionGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[CausalConvolutionGrad::kDY]);
  const Floats<T> x(invocation[CausalConvolutionGrad::kX]);
  const Floats<T> w(invocation[CausalConvolutionGrad::kW]);
  const Floats<T> dx(invocation[CausalConvolutionGrad::kDX]);
  const std::span<T> memory = scratch<T>(invocation);
  const std::span<T> of_x = memory.subspan(0, static_cast<size_t>(x.rows()));
  const std::span<T> of_w = memory.subspan(of_x.size(), static_cast<size_t>(w.columns()));
  for (int64_t c = 0; c < x.columns(); ++c) {
    std::ranges::fill(memory, T{0});
    for_each_segment(invocation[CausalConvolutionGrad::kBounds], [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const T sum = convolved(x, w, begin, t, c);
        const T s = T{1} / (T{1} + std::exp(-sum));
        const T slope = dy.at(t, c) * s * (T{1} + sum * (T{1} - s));
        for (int64_t k = 0; k < std::min(w.columns(), t - begin + 1); ++k) {
          const int64_t place = w.columns() - 1 - k;
          of_x[static_cast<size_t>(t - k)] += slope * w.at(c, place);
          of_w[static_cast<size_t>(place)] += slope * x.at(t - k, c);
        }
      }
    });
    for (int64_t t = 0; t < x.rows(); ++t) dx.set(t, c, of_x[static_cast<size_t>(t)]);
    if (!grad.weight_gradient) continue;
    const Floats<T> dw(invocation[CausalConvolutionGrad::kDW]);
    for (int64_t k = 0; k < w.columns(); ++k) dw.set(c, k, of_w[static_cast<size_t>(k)]);
  }
}

int64_t scratch_elements(const CausalConvolutionGrad&, const program::OperationView& view) {
  return view[CausalConvolutionGrad::kX].shape[0] + view[CausalConvolutionGrad::kW].shape[2];
}

}  // namespace

SNUG_REFERENCE_KIND(CausalConvolution);
SNUG_REFERENCE_KIND(CausalConvolutionGrad, .scratch_elements = scratch_elements);

}  // namespace snug::backends::reference
