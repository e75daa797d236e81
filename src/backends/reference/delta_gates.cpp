#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/recurrence/delta_gates.h"

namespace snug::backends::reference {
namespace {

using program::DeltaGates;
using program::DeltaGatesGrad;

// log(1 + exp(x)).
template <typename T>
T softplus(T x) {
  return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
}

template <typename T>
T logistic(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

template <typename T>
void run(const DeltaGates&, const Invocation& invocation) {
  const Floats<T> a(invocation[DeltaGates::kA]);
  const Floats<T> b(invocation[DeltaGates::kB]);
  const Floats<T> a_log(invocation[DeltaGates::kALog]);
  const Floats<T> dt_bias(invocation[DeltaGates::kDtBias]);
  const Floats<T> g(invocation[DeltaGates::kG]);
  const Floats<T> beta(invocation[DeltaGates::kBeta]);
  for (int64_t t = 0; t < a.rows(); ++t)
    for (int64_t h = 0; h < a.columns(); ++h) {
      g.set(t, h, -std::exp(a_log[h]) * softplus(a.at(t, h) + dt_bias[h]));
      beta.set(t, h, logistic(b.at(t, h)));
    }
}

template <typename T>
void run(const DeltaGatesGrad& grad, const Invocation& invocation) {
  const Floats<T> dg(invocation[DeltaGatesGrad::kDG]);
  const Floats<T> dbeta(invocation[DeltaGatesGrad::kDBeta]);
  const Floats<T> a(invocation[DeltaGatesGrad::kA]);
  const Floats<T> b(invocation[DeltaGatesGrad::kB]);
  const Floats<T> a_log(invocation[DeltaGatesGrad::kALog]);
  const Floats<T> dt_bias(invocation[DeltaGatesGrad::kDtBias]);
  const Floats<T> da(invocation[DeltaGatesGrad::kDA]);
  const Floats<T> db(invocation[DeltaGatesGrad::kDB]);
  for (int64_t h = 0; h < a.columns(); ++h) {
    const T rate = -std::exp(a_log[h]);
    T of_a_log = 0;
    T of_dt_bias = 0;
    for (int64_t t = 0; t < a.rows(); ++t) {
      const T sum = a.at(t, h) + dt_bias[h];
      const T slope = dg.at(t, h) * rate * logistic(sum);
      const T beta = logistic(b.at(t, h));
      of_a_log += dg.at(t, h) * rate * softplus(sum);
      of_dt_bias += slope;
      da.set(t, h, slope);
      db.set(t, h, dbeta.at(t, h) * beta * (T{1} - beta));
    }
    if (!grad.weight_gradient) continue;
    Floats<T>(invocation[DeltaGatesGrad::kDALog]).set(h, of_a_log);
    Floats<T>(invocation[DeltaGatesGrad::kDDtBias]).set(h, of_dt_bias);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(DeltaGates);
SNUG_REFERENCE_KIND(DeltaGatesGrad);

}  // namespace snug::backends::reference
