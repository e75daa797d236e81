// Gated and plain activations, and softcap.
#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/gelu_gate.h"
#include "backends/reference/kinds.h"
#include "program/kinds/elementwise/clamped_swiglu.h"
#include "program/kinds/elementwise/gelu.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/multiply.h"
#include "program/kinds/elementwise/relu.h"
#include "program/kinds/elementwise/sigmoid_mul.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/elementwise/softcap.h"

namespace snug::backends::reference {
namespace {

using program::ClampedSwiglu;
using program::ClampedSwigluGrad;
using program::Gelu;
using program::GeluGrad;
using program::GeluMul;
using program::GeluMulGrad;
using program::Multiply;
using program::MultiplyGrad;
using program::Relu;
using program::ReluGrad;
using program::SigmoidMul;
using program::SigmoidMulGrad;
using program::SiluMul;
using program::SiluMulGrad;
using program::Softcap;
using program::SoftcapGrad;

template <typename T>
void run(const Relu&, const Invocation& invocation) {
  const Floats<T> x(invocation[Relu::kX]);
  const Floats<T> y(invocation[Relu::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, x[i] < T{0} ? T{0} : x[i]);
}

template <typename T>
void run(const ReluGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[ReluGrad::kDY]);
  const Floats<T> y(invocation[ReluGrad::kY]);
  const Floats<T> dx(invocation[ReluGrad::kDX]);
  for (int64_t i = 0; i < dx.count(); ++i) dx.set(i, y[i] > T{0} ? dy[i] : T{0});
}

template <typename T>
void run(const Gelu& gelu, const Invocation& invocation) {
  const Floats<T> x(invocation[Gelu::kX]);
  const Floats<T> y(invocation[Gelu::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, x[i] * gate_of(x[i], gelu.tanh).factor);
}

template <typename T>
void run(const GeluGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[GeluGrad::kDY]);
  const Floats<T> x(invocation[GeluGrad::kX]);
  const Floats<T> dx(invocation[GeluGrad::kDX]);
  for (int64_t i = 0; i < dx.count(); ++i) {
    const Gate<T> gate = gate_of(x[i], grad.tanh);
    dx.set(i, dy[i] * (gate.factor + x[i] * gate.slope));
  }
}

template <typename T>
void run(const Softcap& softcap, const Invocation& invocation) {
  const Floats<T> x(invocation[Softcap::kX]);
  const Floats<T> y(invocation[Softcap::kY]);
  const auto cap = static_cast<T>(softcap.cap);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, cap * std::tanh(x[i] / cap));
}

template <typename T>
void run(const SoftcapGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[SoftcapGrad::kDY]);
  const Floats<T> y(invocation[SoftcapGrad::kY]);
  const Floats<T> dx(invocation[SoftcapGrad::kDX]);
  const auto cap = static_cast<T>(grad.cap);
  for (int64_t i = 0; i < dx.count(); ++i) {
    const T share = y[i] / cap;
    dx.set(i, dy[i] * (1 - share * share));
  }
}

template <typename T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

template <typename T>
void run(const SiluMul&, const Invocation& invocation) {
  const Floats<T> gate(invocation[SiluMul::kGate]);
  const Floats<T> up(invocation[SiluMul::kUp]);
  const Floats<T> y(invocation[SiluMul::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, gate[i] * sigmoid(gate[i]) * up[i]);
}

template <typename T>
void run(const SiluMulGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[SiluMulGrad::kDY]);
  const Floats<T> gate(invocation[SiluMulGrad::kGate]);
  const Floats<T> up(invocation[SiluMulGrad::kUp]);
  const Floats<T> dgate(invocation[SiluMulGrad::kDGate]);
  const Floats<T> dup(invocation[SiluMulGrad::kDUp]);
  for (int64_t i = 0; i < dy.count(); ++i) {
    // All inputs are read before any output is written, since they may be the same memory.
    const T slope = dy[i];
    const T g = gate[i];
    const T u = up[i];
    const T s = sigmoid(g);
    dgate.set(i, slope * u * s * (T{1} + g * (T{1} - s)));
    dup.set(i, slope * g * s);
  }
}

template <typename T>
void run(const Multiply&, const Invocation& invocation) {
  const Floats<T> gate(invocation[Multiply::kGate]);
  const Floats<T> up(invocation[Multiply::kUp]);
  const Floats<T> y(invocation[Multiply::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, gate[i] * up[i]);
}

template <typename T>
void run(const MultiplyGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[MultiplyGrad::kDY]);
  const Floats<T> gate(invocation[MultiplyGrad::kGate]);
  const Floats<T> up(invocation[MultiplyGrad::kUp]);
  const Floats<T> dgate(invocation[MultiplyGrad::kDGate]);
  const Floats<T> dup(invocation[MultiplyGrad::kDUp]);
  for (int64_t i = 0; i < dy.count(); ++i) {
    // All inputs are read before any output is written, since they may be the same memory.
    const T slope = dy[i];
    const T g = gate[i];
    const T u = up[i];
    dgate.set(i, slope * u);
    dup.set(i, slope * g);
  }
}

template <typename T>
void run(const SigmoidMul&, const Invocation& invocation) {
  const Floats<T> gate(invocation[SigmoidMul::kGate]);
  const Floats<T> up(invocation[SigmoidMul::kUp]);
  const Floats<T> y(invocation[SigmoidMul::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, sigmoid(gate[i]) * up[i]);
}

template <typename T>
void run(const SigmoidMulGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[SigmoidMulGrad::kDY]);
  const Floats<T> gate(invocation[SigmoidMulGrad::kGate]);
  const Floats<T> up(invocation[SigmoidMulGrad::kUp]);
  const Floats<T> dgate(invocation[SigmoidMulGrad::kDGate]);
  const Floats<T> dup(invocation[SigmoidMulGrad::kDUp]);
  for (int64_t i = 0; i < dy.count(); ++i) {
    // All inputs are read before any output is written, since they may be the same memory.
    const T slope = dy[i];
    const T u = up[i];
    const T s = sigmoid(gate[i]);
    dgate.set(i, slope * u * s * (T{1} - s));
    dup.set(i, slope * s);
  }
}

template <typename T>
void run(const GeluMul& gelu_mul, const Invocation& invocation) {
  const Floats<T> gate(invocation[GeluMul::kGate]);
  const Floats<T> up(invocation[GeluMul::kUp]);
  const Floats<T> y(invocation[GeluMul::kY]);
  for (int64_t i = 0; i < y.count(); ++i)
    y.set(i, gate[i] * gate_of(gate[i], gelu_mul.tanh).factor * up[i]);
}

template <typename T>
void run(const GeluMulGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[GeluMulGrad::kDY]);
  const Floats<T> gate(invocation[GeluMulGrad::kGate]);
  const Floats<T> up(invocation[GeluMulGrad::kUp]);
  const Floats<T> dgate(invocation[GeluMulGrad::kDGate]);
  const Floats<T> dup(invocation[GeluMulGrad::kDUp]);
  for (int64_t i = 0; i < dy.count(); ++i) {
    // All inputs are read before any output is written, since they may be the same memory.
    const T slope = dy[i];
    const T g = gate[i];
    const T u = up[i];
    const Gate<T> of_gate = gate_of(g, grad.tanh);
    dgate.set(i, slope * u * (of_gate.factor + g * of_gate.slope));
    dup.set(i, slope * g * of_gate.factor);
  }
}

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

SNUG_REFERENCE_KIND(Relu);
SNUG_REFERENCE_KIND(ReluGrad);
SNUG_REFERENCE_KIND(Gelu);
SNUG_REFERENCE_KIND(GeluGrad);
SNUG_REFERENCE_KIND(Softcap);
SNUG_REFERENCE_KIND(SoftcapGrad);
SNUG_REFERENCE_KIND(Multiply);
SNUG_REFERENCE_KIND(MultiplyGrad);
SNUG_REFERENCE_KIND(SigmoidMul);
SNUG_REFERENCE_KIND(SigmoidMulGrad);
SNUG_REFERENCE_KIND(SiluMul);
SNUG_REFERENCE_KIND(SiluMulGrad);
SNUG_REFERENCE_KIND(GeluMul);
SNUG_REFERENCE_KIND(GeluMulGrad);
SNUG_REFERENCE_KIND(ClampedSwiglu);
SNUG_REFERENCE_KIND(ClampedSwigluGrad);

}  // namespace snug::backends::reference
