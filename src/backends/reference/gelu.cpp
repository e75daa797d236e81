#include "backends/reference/elements.h"
#include "backends/reference/gelu_gate.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

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
