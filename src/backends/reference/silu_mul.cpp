#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

template <typename T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

template <typename T>
void run(const program::SiluMul&, const Invocation& invocation) {
  const Floats<T> gate(invocation[program::SiluMul::kGate]);
  const Floats<T> up(invocation[program::SiluMul::kUp]);
  const Floats<T> y(invocation[program::SiluMul::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, gate[i] * sigmoid(gate[i]) * up[i]);
}

template <typename T>
void run(const program::SiluMulGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::SiluMulGrad::kDY]);
  const Floats<T> gate(invocation[program::SiluMulGrad::kGate]);
  const Floats<T> up(invocation[program::SiluMulGrad::kUp]);
  const Floats<T> dgate(invocation[program::SiluMulGrad::kDGate]);
  const Floats<T> dup(invocation[program::SiluMulGrad::kDUp]);
  for (int64_t i = 0; i < dy.count(); ++i) {
    // All read before any is written: the outputs may take the inputs' bytes.
    const T slope = dy[i];
    const T g = gate[i];
    const T u = up[i];
    const T s = sigmoid(g);
    dgate.set(i, slope * u * s * (T{1} + g * (T{1} - s)));
    dup.set(i, slope * g * s);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(SiluMul);
SNUG_REFERENCE_KIND(SiluMulGrad);

}  // namespace snug::backends::reference
