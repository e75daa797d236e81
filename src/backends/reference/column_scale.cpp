#include "program/kinds/product/column_scale.h"
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
  const int64_t width = program::columns_of_gain(x.columns(), gain.columns());
  for (int64_t j = 0; j < x.columns(); ++j) {
    T factor = gain[j / width];
    if (scale.divided) factor /= Floats<T>(invocation[ScaleColumns::kDivisor])[j / width];
    for (int64_t t = 0; t < x.rows(); ++t) y.set(t, j, x.at(t, j) * factor);
  }
}

template <typename T>
void run(const ColumnGainGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[ColumnGainGrad::kDY]);
  const Floats<T> x(invocation[ColumnGainGrad::kX]);
  const Floats<T> dgain(invocation[ColumnGainGrad::kDGain]);
  const int64_t width = program::columns_of_gain(x.columns(), dgain.columns());
  for (int64_t i = 0; i < dgain.columns(); ++i) {
    T sum = 0;
    for (int64_t j = i * width; j < (i + 1) * width; ++j) {
      T column = 0;
      for (int64_t t = 0; t < x.rows(); ++t) column += dy.at(t, j) * x.at(t, j);
      sum += column;
    }
    if (grad.divided) sum /= Floats<T>(invocation[ColumnGainGrad::kDivisor])[i];
    dgain.set(i, grad.accumulate ? dgain[i] + sum : sum);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(ScaleColumns);
SNUG_REFERENCE_KIND(ColumnGainGrad);

}  // namespace snug::backends::reference
