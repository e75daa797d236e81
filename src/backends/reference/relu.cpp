#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::Relu&, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Relu::kX]);
  const Floats<T> y(invocation[program::Relu::kY]);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, x[i] < T{0} ? T{0} : x[i]);
}

template <typename T>
void run(const program::ReluGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::ReluGrad::kDY]);
  const Floats<T> y(invocation[program::ReluGrad::kY]);
  const Floats<T> dx(invocation[program::ReluGrad::kDX]);
  for (int64_t i = 0; i < dx.count(); ++i) dx.set(i, y[i] > T{0} ? dy[i] : T{0});
}

}  // namespace

SNUG_REFERENCE_KIND(Relu);
SNUG_REFERENCE_KIND(ReluGrad);

}  // namespace snug::backends::reference
