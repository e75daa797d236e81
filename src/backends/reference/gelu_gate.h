// The factor by which gelu multiplies x, and its slope, in both forms.
#pragma once

#include <cmath>
#include <numbers>

namespace snug::backends::reference {

// gelu(x) = x * factor, gelu'(x) = factor + x * slope.
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

}  // namespace snug::backends::reference
