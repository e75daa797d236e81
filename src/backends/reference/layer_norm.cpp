#include <cmath>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/norm/layer_norm.h"

namespace snug::backends::reference {
namespace {

// The mean of a row and the reciprocal root 1 / sqrt(variance + epsilon).
template <typename T>
struct RowStatistics {
  T mean, root;
};

template <typename T>
RowStatistics<T> statistics_of(const Floats<T>& x, int64_t t, float epsilon) {
  const auto columns = static_cast<T>(x.columns());
  // Sums differences from the first element: a sum of elements far from zero would lose the digits
  // in which they differ.
  const T origin = x.at(t, 0);
  T mean = 0;
  for (int64_t j = 0; j < x.columns(); ++j) mean += x.at(t, j) - origin;
  mean = origin + mean / columns;
  T variance = 0;
  for (int64_t j = 0; j < x.columns(); ++j) variance += (x.at(t, j) - mean) * (x.at(t, j) - mean);
  variance /= columns;
  return {mean, T{1} / std::sqrt(variance + static_cast<T>(epsilon))};
}

template <typename T>
void run(const program::LayerNorm& norm, const Invocation& invocation) {
  const Floats<T> x(invocation[program::LayerNorm::kX]);
  const Floats<T> w(invocation[program::LayerNorm::kW]);
  const Floats<T> y(invocation[program::LayerNorm::kY]);
  for (int64_t t = 0; t < x.rows(); ++t) {
    const RowStatistics<T> row = statistics_of(x, t, norm.epsilon);
    for (int64_t j = 0; j < x.columns(); ++j) {
      T value = (x.at(t, j) - row.mean) * row.root * w[j];
      if (norm.bias) value += Floats<T>(invocation[program::LayerNorm::kBias])[j];
      y.set(t, j, value);
    }
  }
}

// dw[j] (+)= the sum over rows of dy times the normalised x.
template <typename T>
void weight_gradient(const program::LayerNormGrad& grad, const Invocation& invocation,
                     std::span<const RowStatistics<T>> rows) {
  const Floats<T> dy(invocation[program::LayerNormGrad::kDY]);
  const Floats<T> x(invocation[program::LayerNormGrad::kX]);
  const Floats<T> dw(invocation[program::LayerNormGrad::kDW]);
  for (int64_t j = 0; j < x.columns(); ++j) {
    T sum = 0;
    for (int64_t t = 0; t < x.rows(); ++t) {
      const RowStatistics<T>& row = rows[static_cast<size_t>(t)];
      sum += dy.at(t, j) * (x.at(t, j) - row.mean) * row.root;
    }
    dw.set(j, grad.accumulate ? dw[j] + sum : sum);
  }
}

// With r the reciprocal root, n = r (x - mean) and g = dy w:
//   dx = r (g - mean(g) - n mean(g n)) + addend.
template <typename T>
void run(const program::LayerNormGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::LayerNormGrad::kDY]);
  const Floats<T> x(invocation[program::LayerNormGrad::kX]);
  const Floats<T> w(invocation[program::LayerNormGrad::kW]);
  const Floats<T> dx(invocation[program::LayerNormGrad::kDX]);
  const auto columns = static_cast<T>(x.columns());
  const std::span<T> memory = scratch<T>(invocation);
  const std::span rows(reinterpret_cast<RowStatistics<T>*>(memory.data()),
                       static_cast<size_t>(x.rows()));
  for (int64_t t = 0; t < x.rows(); ++t)
    rows[static_cast<size_t>(t)] = statistics_of(x, t, grad.epsilon);
  // Computed before dx, which may be the same memory as dy or x.
  if (grad.weight_gradient) weight_gradient<T>(grad, invocation, rows);
  for (int64_t t = 0; t < x.rows(); ++t) {
    const RowStatistics<T>& row = rows[static_cast<size_t>(t)];
    const auto normalised = [&](int64_t j) { return (x.at(t, j) - row.mean) * row.root; };
    T mean = 0;
    T mean_product = 0;
    for (int64_t j = 0; j < x.columns(); ++j) {
      mean += dy.at(t, j) * w[j];
      mean_product += dy.at(t, j) * w[j] * normalised(j);
    }
    mean /= columns;
    mean_product /= columns;
    for (int64_t j = 0; j < x.columns(); ++j) {
      T value = row.root * (dy.at(t, j) * w[j] - mean - normalised(j) * mean_product);
      if (grad.addend) value += Floats<T>(invocation[program::LayerNormGrad::kAddend]).at(t, j);
      dx.set(t, j, value);
    }
  }
}

int64_t scratch_elements(const program::LayerNormGrad&, const program::OperationView& view) {
  return 2 * view[program::LayerNormGrad::kX].shape.rows();
}

}  // namespace

SNUG_REFERENCE_KIND(LayerNorm);
SNUG_REFERENCE_KIND(LayerNormGrad, .scratch_elements = scratch_elements);

}  // namespace snug::backends::reference
