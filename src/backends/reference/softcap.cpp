#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::Softcap& softcap, const Invocation& invocation) {
  const Floats<T> x(invocation[program::Softcap::kX]);
  const Floats<T> y(invocation[program::Softcap::kY]);
  const auto cap = static_cast<T>(softcap.cap);
  for (int64_t i = 0; i < y.count(); ++i) y.set(i, cap * std::tanh(x[i] / cap));
}

template <typename T>
void run(const program::SoftcapGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[program::SoftcapGrad::kDY]);
  const Floats<T> y(invocation[program::SoftcapGrad::kY]);
  const Floats<T> dx(invocation[program::SoftcapGrad::kDX]);
  const auto cap = static_cast<T>(grad.cap);
  for (int64_t i = 0; i < dx.count(); ++i) {
    const T share = y[i] / cap;
    dx.set(i, dy[i] * (1 - share * share));
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Softcap);
SNUG_REFERENCE_KIND(SoftcapGrad);

}  // namespace snug::backends::reference
