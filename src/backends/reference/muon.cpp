#include <algorithm>
#include <cmath>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/optimizer/muon.h"

namespace snug::backends::reference {
namespace {

using program::MuonMomentum;
using program::MuonStep;
using program::Normalize;

template <typename T>
void run(const MuonMomentum& muon, const Invocation& invocation) {
  const Floats<T> gradient(invocation[MuonMomentum::kGradient]);
  const Floats<T> momentum(invocation[MuonMomentum::kMomentum]);
  const Floats<T> direction(invocation[MuonMomentum::kDirection]);
  const T factor = Floats<T>(invocation[MuonMomentum::kFactor])[0];
  const T decay = static_cast<T>(muon.momentum);
  for (int64_t i = 0; i < gradient.count(); ++i) {
    if (std::isnan(factor)) {
      direction.set(i, 0);
      continue;
    }
    const T g = gradient[i] * factor;
    const T next = momentum[i] + (T{1} - decay) * (g - momentum[i]);
    momentum.set(i, next);
    direction.set(i, muon.nesterov ? g + decay * (next - g) : next);
  }
}

template <typename T>
T rounded_to(base::DType dtype, T value) {
  const auto narrow = static_cast<float>(value);
  if (dtype == base::DType::bf16) return static_cast<T>(base::to_float(base::to_bfloat16(narrow)));
  if (dtype == base::DType::f16) return static_cast<T>(base::to_float(base::to_float16(narrow)));
  return value;
}

template <typename T>
void run(const Normalize& normalize, const Invocation& invocation) {
  const Floats<T> x(invocation[Normalize::kX]);
  const Floats<T> y(invocation[Normalize::kY]);
  double squares = 0;
  for (int64_t i = 0; i < x.count(); ++i)
    squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const T norm = rounded_to(x.dtype(), static_cast<T>(std::sqrt(squares)));
  const T divisor = rounded_to(x.dtype(), std::max(norm, static_cast<T>(normalize.epsilon)));
  for (int64_t i = 0; i < x.count(); ++i) y.set(i, x[i] / divisor);
}

template <typename T>
void run(const MuonStep& step, const Invocation& invocation) {
  const Floats<T> direction(invocation[MuonStep::kDirection]);
  const Floats<T> weight(invocation[MuonStep::kWeight]);
  const Floats<T> stepped(invocation[step.has_master ? MuonStep::kMaster : MuonStep::kWeight]);
  const T factor = Floats<T>(invocation[MuonStep::kFactor])[0];
  const T rate = Floats<T>(invocation[MuonStep::kLearningRate])[0];
  if (std::isnan(factor)) return;
  const T keep = T{1} - rate * static_cast<T>(step.weight_decay);
  const int64_t left = step.elements - invocation[MuonStep::kWeight].first;
  for (int64_t i = 0; i < std::min(weight.count(), left); ++i) {
    const T next = stepped[i] * keep - rate * static_cast<T>(step.rate_scale) * direction[i];
    weight.set(i, next);
    if (step.has_master) stepped.set(i, next);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(MuonMomentum);
SNUG_REFERENCE_KIND(Normalize);
SNUG_REFERENCE_KIND(MuonStep);

}  // namespace snug::backends::reference
