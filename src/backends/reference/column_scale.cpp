#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

using program::ColumnGainGrad;
using program::ScaleColumns;

template <typename T>
void run(const ScaleColumns& scale, const Invocation& invocation) {
  const Floats<T> x(invocation[ScaleColumns::kX]);
  const Floats<T> gain(invocation[ScaleColumns::kGain]);
  const Floats<T> y(invocation[ScaleColumns::kY]);
  for (int64_t j = 0; j < x.columns(); ++j) {
    T factor = gain[j];
    if (scale.divided) factor /= Floats<T>(invocation[ScaleColumns::kDivisor])[j];
    for (int64_t t = 0; t < x.rows(); ++t) y.set(t, j, x.at(t, j) * factor);
  }
}

template <typename T>
void run(const ColumnGainGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[ColumnGainGrad::kDY]);
  const Floats<T> x(invocation[ColumnGainGrad::kX]);
  const Floats<T> dgain(invocation[ColumnGainGrad::kDGain]);
  for (int64_t j = 0; j < x.columns(); ++j) {
    T sum = 0;
    for (int64_t t = 0; t < x.rows(); ++t) sum += dy.at(t, j) * x.at(t, j);
    if (grad.divided) sum /= Floats<T>(invocation[ColumnGainGrad::kDivisor])[j];
    dgain.set(j, grad.accumulate ? dgain[j] + sum : sum);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(ScaleColumns);
SNUG_REFERENCE_KIND(ColumnGainGrad);

}  // namespace snug::backends::reference
