#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

using program::ClampedSwiglu;
using program::ClampedSwigluGrad;

template <typename T>
void run(const ClampedSwiglu& swiglu, const Invocation& invocation) {
  const Floats<T> gate_up(invocation[ClampedSwiglu::kGateUp]);
  const Floats<T> y(invocation[ClampedSwiglu::kY]);
  const auto limit = static_cast<T>(swiglu.limit);
  const auto alpha = static_cast<T>(swiglu.alpha);
  for (int64_t i = 0; i < y.rows(); ++i)
    for (int64_t j = 0; j < y.columns(); ++j) {
      const T gate = std::min(gate_up.at(i, 2 * j), limit);
      const T up = std::clamp(gate_up.at(i, 2 * j + 1), -limit, limit);
      y.set(i, j, (up + 1) * gate / (1 + std::exp(-alpha * gate)));
    }
}

template <typename T>
void run(const ClampedSwigluGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[ClampedSwigluGrad::kDY]);
  const Floats<T> gate_up(invocation[ClampedSwigluGrad::kGateUp]);
  const Floats<T> dgate_up(invocation[ClampedSwigluGrad::kDGateUp]);
  const auto limit = static_cast<T>(grad.limit);
  const auto alpha = static_cast<T>(grad.alpha);
  for (int64_t i = 0; i < dy.rows(); ++i)
    for (int64_t j = 0; j < dy.columns(); ++j) {
      const T given_gate = gate_up.at(i, 2 * j);
      const T given_up = gate_up.at(i, 2 * j + 1);
      const T gate = std::min(given_gate, limit);
      const T up = std::clamp(given_up, -limit, limit);
      const T s = 1 / (1 + std::exp(-alpha * gate));
      const T slope = s * (1 + alpha * gate * (1 - s));
      const T d = dy.at(i, j);
      dgate_up.set(i, 2 * j, given_gate <= limit ? d * (up + 1) * slope : T{0});
      dgate_up.set(i, 2 * j + 1, std::abs(given_up) <= limit ? d * gate * s : T{0});
    }
}

}  // namespace

SNUG_REFERENCE_KIND(ClampedSwiglu);
SNUG_REFERENCE_KIND(ClampedSwigluGrad);

}  // namespace snug::backends::reference
