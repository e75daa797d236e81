#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/optimizer/lion.h"

namespace snug::backends::reference {
namespace {

using program::Lion;

template <typename T>
void run(const Lion& lion, const Invocation& invocation) {
  const Floats<T> gradient(invocation[Lion::kGradient]);
  const T factor = Floats<T>(invocation[Lion::kFactor])[0];
  const T rate = Floats<T>(invocation[Lion::kLearningRate])[0];
  const Floats<T> weight(invocation[Lion::kWeight]);
  const Floats<T> momentum(invocation[Lion::kMomentum]);
  const Floats<T> stepped(invocation[lion.has_master ? Lion::kMaster : Lion::kWeight]);
  if (std::isnan(factor)) return;
  const T beta1 = static_cast<T>(lion.beta1);
  const T beta2 = static_cast<T>(lion.beta2);
  for (int64_t i = 0; i < weight.count(); ++i) {
    const T g = gradient[i] * factor;
    const T mean = beta1 * momentum[i] + (T{1} - beta1) * g;
    const T sign = static_cast<T>((mean > 0) - (mean < 0));
    const T next = stepped[i] * (T{1} - rate * static_cast<T>(lion.weight_decay)) - rate * sign;
    momentum.set(i, beta2 * momentum[i] + (T{1} - beta2) * g);
    weight.set(i, next);
    if (lion.has_master) stepped.set(i, next);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Lion);

}  // namespace snug::backends::reference
