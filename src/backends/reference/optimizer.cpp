#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::reference {
namespace {

using program::AdamW;

// Rounding planes of AdamW's tensors, as random_bits.h numbers them.
enum Plane : uint32_t { kWeight = 0, kFirstMoment = 1, kSecondMoment = 2 };

// The values of one step that all elements share.
template <typename T>
struct Step {
  T factor, learning_rate, first_correction, second_correction;
};

template <typename T>
struct State {
  T weight, first, second;
};

// In torch's order: decay, moments, step.
template <typename T>
State<T> step_element(const AdamW& adamw, const Step<T>& step, State<T> state, T gradient) {
  const T beta1 = static_cast<T>(adamw.beta1);
  const T beta2 = static_cast<T>(adamw.beta2);
  const T g = gradient * step.factor;
  state.weight -= step.learning_rate * static_cast<T>(adamw.weight_decay) * state.weight;
  state.first = beta1 * state.first + (T{1} - beta1) * g;
  state.second = beta2 * state.second + (T{1} - beta2) * g * g;
  const T root = std::sqrt(state.second / step.second_correction);
  state.weight -= step.learning_rate * (state.first / step.first_correction) /
                  (root + static_cast<T>(adamw.epsilon));
  return state;
}

template <typename T>
void run(const program::GlobalNorm&, const Invocation& invocation) {
  // The sum is fp64: over many gradients, an fp32 sum would be wrong in the fifth digit.
  double squares = 0;
  for (const Buffer& buffer : invocation.all(program::Access::read)) {
    const Floats<T> gradient(buffer);
    for (int64_t i = 0; i < gradient.count(); ++i) {
      const double value = gradient[i];
      squares += value * value;
    }
  }
  Floats<T>(invocation[program::GlobalNorm::kNorm]).set(0, static_cast<T>(std::sqrt(squares)));
}

template <typename T>
void run(const program::ClipFactor& clip, const Invocation& invocation) {
  const T norm = Floats<T>(invocation[program::ClipFactor::kNorm])[0];
  const T max_norm = static_cast<T>(clip.max_norm);
  T factor = max_norm == 0 ? T{1} : std::min(T{1}, max_norm / (norm + static_cast<T>(1e-6)));
  if (!std::isfinite(norm)) factor = std::numeric_limits<T>::quiet_NaN();
  Floats<T>(invocation[program::ClipFactor::kFactor]).set(0, factor);
}

template <typename T>
void run(const AdamW& adamw, const Invocation& invocation) {
  const Floats<T> gradient(invocation[AdamW::kGradient]);
  const int32_t count = Integers(invocation[AdamW::kStep])[0];
  const Step<T> step{
      .factor = Floats<T>(invocation[AdamW::kFactor])[0],
      .learning_rate = Floats<T>(invocation[AdamW::kLearningRate])[0],
      .first_correction = T{1} - std::pow(static_cast<T>(adamw.beta1), static_cast<T>(count)),
      .second_correction = T{1} - std::pow(static_cast<T>(adamw.beta2), static_cast<T>(count))};
  const Floats<T> weight(invocation[AdamW::kWeight]);
  const Floats<T> first(invocation[AdamW::kFirstMoment]);
  const Floats<T> second(invocation[AdamW::kSecondMoment]);
  // The tensor that the step updates: the master where there is one.
  const Floats<T> stepped(invocation[adamw.has_master ? AdamW::kMaster : AdamW::kWeight]);
  if (std::isnan(step.factor)) return;
  const base::PhiloxKey key =
      stream_key({adamw.seed, adamw.site, count, 0}, RandomPurpose::rounding);
  const int64_t begin = invocation[AdamW::kWeight].first;
  for (int64_t i = 0; i < weight.count(); ++i) {
    const T original = stepped[i];
    const State<T> state =
        step_element<T>(adamw, step, {original, first[i], second[i]}, gradient[i]);
    if (adamw.stochastic) {
      weight.set_rounded(i, state.weight, rounding_bits(key, kWeight, begin + i));
      first.set_rounded(i, state.first, rounding_bits(key, kFirstMoment, begin + i));
      second.set_rounded(i, state.second, rounding_bits(key, kSecondMoment, begin + i));
    } else {
      weight.set(i, state.weight);
      first.set(i, state.first);
      second.set(i, state.second);
      if (adamw.has_master) stepped.set(i, state.weight);
    }
  }
}

}  // namespace

SNUG_REFERENCE_KIND(GlobalNorm);
SNUG_REFERENCE_KIND(ClipFactor);
SNUG_REFERENCE_KIND(AdamW);

}  // namespace snug::backends::reference
