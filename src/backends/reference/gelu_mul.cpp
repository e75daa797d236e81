#include "backends/reference/elements.h"
#include "backends/reference/gelu_gate.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::GeluMul& gelu_mul, const Invocation& invocation) {
  const Floats<T> gate(invocation[program::GeluMul::kGate]);
  const Floats<T> up(invocation[program::GeluMul::kUp]);
  const Floats<T> y(invocation[program::GeluMul::kY]);
  for (int64_t i = 0; i < y.count(); ++i)
    y.set(i, gate[i] * gate_of(gate[i], gelu_mul.tanh).factor * up[i]);
}

template <typename T>
void run(const program::GeluMulGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::GeluMulGrad::kDY]);
  const Floats<T> gate(invocation[program::GeluMulGrad::kGate]);
  const Floats<T> up(invocation[program::GeluMulGrad::kUp]);
  const Floats<T> dgate(invocation[program::GeluMulGrad::kDGate]);
  const Floats<T> dup(invocation[program::GeluMulGrad::kDUp]);
  for (int64_t i = 0; i < dy.count(); ++i) {
    // All read before any is written: the outputs may take the inputs' bytes.
    const T slope = dy[i];
    const T g = gate[i];
    const T u = up[i];
    const Gate<T> of_gate = gate_of(g, grad.tanh);
    dgate.set(i, slope * u * (of_gate.factor + g * of_gate.slope));
    dup.set(i, slope * g * of_gate.factor);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(GeluMul);
SNUG_REFERENCE_KIND(GeluMulGrad);

}  // namespace snug::backends::reference
