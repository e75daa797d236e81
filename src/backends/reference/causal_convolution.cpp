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

// The rows of a sequence before and within a segment, of column c.
template <typename T>
class GrowingColumn {
 public:
  GrowingColumn(const Invocation& invocation, int64_t segment, int64_t c)
      : x_(invocation[CausalConvolution::kX]),
        state_(invocation[CausalConvolution::kState]),
        kept_(state_.columns() / x_.columns()),
        c_(c) {
    const Integers slots(invocation[CausalConvolution::kSlots]);
    place_ = slots[2 * segment];
    is_known_ = slots[2 * segment + 1] > 0;
    begin_ = Integers(invocation[CausalConvolution::kBounds])[2 * segment];
  }
  // The row `at` from the segment's first on; those before it are negative.
  T operator[](int64_t at) const {
    if (at >= 0) return x_.at(begin_ + at, c_);
    return is_known_ ? state_.at(place_, column(at)) : T{0};
  }
  // Keeps the last rows of a segment of so many.
  void keep(int64_t rows) const {
    for (int64_t at = -kept_; at < 0; ++at) state_.set(place_, column(at), (*this)[rows + at]);
  }

 private:
  int64_t column(int64_t at) const { return (kept_ + at) * x_.columns() + c_; }

  Floats<T> x_, state_;
  int64_t kept_, c_;
  int64_t place_ = 0, begin_ = 0;
  bool is_known_ = false;
};

// What a sum becomes.
template <typename T>
T activated(T sum, bool plain) {
  return plain ? sum : sum / (T{1} + std::exp(-sum));
}

template <typename T>
void run_cached(const CausalConvolution& convolution, const Invocation& invocation) {
  const Floats<T> w(invocation[CausalConvolution::kW]);
  const Floats<T> y(invocation[CausalConvolution::kY]);
  const Integers bounds(invocation[CausalConvolution::kBounds]);
  for (int64_t segment = 0; 2 * segment < bounds.count(); ++segment) {
    const int64_t begin = bounds[2 * segment];
    const int64_t rows = bounds[2 * segment + 1] - begin;
    for (int64_t c = 0; c < y.columns() && rows > 0; ++c) {
      const GrowingColumn<T> column(invocation, segment, c);
      for (int64_t t = 0; t < rows; ++t) {
        T sum = 0;
        for (int64_t k = 0; k < w.columns(); ++k)
          sum += w.at(c, w.columns() - 1 - k) * column[t - k];
        y.set(begin + t, c, activated(sum, convolution.plain));
      }
      column.keep(rows);
    }
  }
}

template <typename T>
void run(const CausalConvolution& convolution, const Invocation& invocation) {
  const Floats<T> x(invocation[CausalConvolution::kX]);
  const Floats<T> w(invocation[CausalConvolution::kW]);
  const Floats<T> y(invocation[CausalConvolution::kY]);
  clear(y);
  if (convolution.cached) return run_cached<T>(convolution, invocation);
  for_each_segment(invocation[CausalConvolution::kBounds], [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t c = 0; c < x.columns(); ++c) {
        const T sum = convolved(x, w, begin, t, c);
        y.set(t, c, activated(sum, convolution.plain));
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
        const T slope = dy.at(t, c) * (grad.plain ? T{1} : s * (T{1} + sum * (T{1} - s)));
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
