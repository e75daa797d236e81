#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/elementwise/xielu.h"

namespace snug::backends::reference {
namespace {

using program::Xielu;
using program::XieluGrad;
using program::XieluSlope;

template <typename T>
T softplus_of_number(T x) {
  return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
}

// What the learned numbers and the constants amount to.
template <typename T>
struct XieluFactors {
  T positive, negative, beta, epsilon;
};

template <typename T, typename Struct>
XieluFactors<T> factors_of(const Invocation& invocation) {
  const T beta = Floats<T>(invocation[Struct::kBeta])[0];
  return {softplus_of_number(Floats<T>(invocation[Struct::kAlphaP])[0]),
          beta + softplus_of_number(Floats<T>(invocation[Struct::kAlphaN])[0]), beta,
          Floats<T>(invocation[Struct::kEpsilon])[0]};
}

template <typename T>
T below_zero(T x, T epsilon) {
  return std::expm1(std::min(x, epsilon)) - x;
}

template <typename T>
void run(const Xielu&, const Invocation& invocation) {
  const Floats<T> x(invocation[Xielu::kX]);
  const Floats<T> y(invocation[Xielu::kY]);
  const auto by = factors_of<T, Xielu>(invocation);
  for (int64_t i = 0; i < y.count(); ++i) {
    const T v = x[i];
    const T bent = v > T{0} ? by.positive * v * v : by.negative * below_zero(v, by.epsilon);
    y.set(i, bent + by.beta * v);
  }
}

template <typename T>
void run(const XieluGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[XieluGrad::kDY]);
  const Floats<T> x(invocation[XieluGrad::kX]);
  const Floats<T> dx(invocation[XieluGrad::kDX]);
  const auto by = factors_of<T, XieluGrad>(invocation);
  for (int64_t i = 0; i < dx.count(); ++i) {
    const T v = x[i];
    const T negative = v < by.epsilon ? std::expm1(v) : T{-1};
    dx.set(i, dy[i] * (by.beta + (v > T{0} ? 2 * by.positive * v : by.negative * negative)));
  }
}

template <typename T>
void run(const XieluSlope& form, const Invocation& invocation) {
  const Floats<T> x(invocation[XieluSlope::kX]);
  const Floats<T> slope(invocation[XieluSlope::kSlope]);
  const T alpha = Floats<T>(invocation[XieluSlope::kAlpha])[0];
  const T epsilon = Floats<T>(invocation[XieluSlope::kEpsilon])[0];
  const T factor = T{1} / (T{1} + std::exp(-alpha));
  for (int64_t i = 0; i < slope.count(); ++i) {
    const T v = x[i];
    const T positive = v > T{0} ? v * v : T{0};
    const T negative = v > T{0} ? T{0} : below_zero(v, epsilon);
    slope.set(i, factor * (form.negative ? negative : positive));
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Xielu);
SNUG_REFERENCE_KIND(XieluGrad);
SNUG_REFERENCE_KIND(XieluSlope);

}  // namespace snug::backends::reference
