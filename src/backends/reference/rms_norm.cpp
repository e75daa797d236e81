#include <cmath>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/norm/rms_norm.h"

namespace snug::backends::reference {
namespace {

// 1 / sqrt(mean of squares + epsilon) of row t.
template <typename T>
T reciprocal_root(const Floats<T>& x, int64_t t, float epsilon) {
  T squares = 0;
  for (int64_t j = 0; j < x.columns(); ++j) squares += x.at(t, j) * x.at(t, j);
  return T{1} / std::sqrt(squares / static_cast<T>(x.columns()) + static_cast<T>(epsilon));
}

// dw[j] (+)= the sum over rows of dy * x * root; `roots` has the reciprocal root of each row.
template <typename T>
void weight_gradient(const program::RmsNormGrad& grad, const Floats<T>& dy, const Floats<T>& x,
                     std::span<const T> roots, const Floats<T>& dw) {
  for (int64_t j = 0; j < x.columns(); ++j) {
    T sum = 0;
    for (int64_t t = 0; t < x.rows(); ++t)
      sum += dy.at(t, j) * x.at(t, j) * roots[static_cast<size_t>(t)];
    dw.set(j, grad.accumulate ? dw[j] + sum : sum);
  }
}

template <typename T>
void run(const program::RmsNorm& norm, const Invocation& invocation) {
  const Floats<T> x(invocation[program::RmsNorm::kX]);
  const Floats<T> w(invocation[program::RmsNorm::kW]);
  const Floats<T> y(invocation[program::RmsNorm::kY]);
  const auto offset = static_cast<T>(norm.offset);
  for (int64_t t = 0; t < x.rows(); ++t) {
    const T root = reciprocal_root(x, t, norm.epsilon);
    for (int64_t j = 0; j < x.columns(); ++j) y.set(t, j, x.at(t, j) * root * (w[j] + offset));
  }
}

// With r the reciprocal root and w the weight plus its offset:
//   dx = r (dy w - x r^2 mean(dy w x)) + addend.
template <typename T>
void run(const program::RmsNormGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::RmsNormGrad::kDY]);
  const Floats<T> x(invocation[program::RmsNormGrad::kX]);
  const Floats<T> w(invocation[program::RmsNormGrad::kW]);
  const Floats<T> dx(invocation[program::RmsNormGrad::kDX]);
  const std::span<T> roots = scratch<T>(invocation);
  const auto factor = [&](int64_t j) { return w[j] + static_cast<T>(grad.offset); };
  for (int64_t t = 0; t < x.rows(); ++t)
    roots[static_cast<size_t>(t)] = reciprocal_root(x, t, grad.epsilon);
  // Computed before dx, which may be the same memory as dy or x.
  if (grad.weight_gradient)
    weight_gradient<T>(grad, dy, x, roots, Floats<T>(invocation[program::RmsNormGrad::kDW]));
  for (int64_t t = 0; t < x.rows(); ++t) {
    const T root = roots[static_cast<size_t>(t)];
    T mean = 0;
    for (int64_t j = 0; j < x.columns(); ++j) mean += dy.at(t, j) * factor(j) * x.at(t, j);
    mean /= static_cast<T>(x.columns());
    for (int64_t j = 0; j < x.columns(); ++j) {
      T value = root * (dy.at(t, j) * factor(j) - x.at(t, j) * root * root * mean);
      if (grad.addend) value += Floats<T>(invocation[program::RmsNormGrad::kAddend]).at(t, j);
      dx.set(t, j, value);
    }
  }
}

int64_t scratch_elements(const program::RmsNormGrad&, const program::OperationView& view) {
  return view[program::RmsNormGrad::kX].shape.rows();
}

}  // namespace

SNUG_REFERENCE_KIND(RmsNorm);
SNUG_REFERENCE_KIND(RmsNormGrad, .scratch_elements = scratch_elements);

}  // namespace snug::backends::reference
