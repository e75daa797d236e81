#include <cmath>
#include <numbers>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

// gelu(x) = x factor, gelu'(x) = factor + x slope.
template <typename T>
struct Gate {
  T factor, slope;
};

template <typename T>
Gate<T> normal_gate(T x) {
  const T density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  return {std::erfc(-x / std::numbers::sqrt2_v<T>) / 2, density};
}

template <typename T>
Gate<T> tanh_gate(T x) {
  const T scale = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
  const T cubic = static_cast<T>(0.044715);
  const T h = std::tanh(scale * (x + cubic * x * x * x));
  return {(1 + h) / 2, (1 - h * h) / 2 * scale * (1 + 3 * cubic * x * x)};
}

template <typename T>
Gate<T> gate_of(T x, bool tanh) {
  return tanh ? tanh_gate(x) : normal_gate(x);
}

template <typename T>
void run(const program::Gelu& gelu, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Gelu::kX]);
  const Floats<T> y(invocation[program::Gelu::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, x[i] * gate_of(x[i], gelu.tanh).factor);
}

template <typename T>
void run(const program::GeluGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::GeluGrad::kDY]);
  const Floats<T> x(invocation[program::GeluGrad::kX]);
  const Floats<T> dx(invocation[program::GeluGrad::kDX]);
  for (int64_t i = 0; i < dx.count(); ++i) {
    const Gate<T> gate = gate_of(x[i], grad.tanh);
    dx.set(i, dy[i] * (gate.factor + x[i] * gate.slope));
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Gelu);
SNUG_REFERENCE_KIND(GeluGrad);

}  // namespace snug::backends::reference
