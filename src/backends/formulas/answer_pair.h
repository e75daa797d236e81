// The arithmetic of one pair of answers, the same in all backends: T is float or double. Constexpr,
// so that kernels can call it directly.
#pragma once

#include <cmath>

namespace snug::backends {

// -log sigmoid(x), without overflow.
template <typename T>
constexpr T minus_log_sigmoid(T x) {
  const T least = x < T{0} ? -x : T{0};
  return least + std::log1p(std::exp(x < T{0} ? x : -x));
}

// sigmoid(-x), without overflow.
template <typename T>
constexpr T sigmoid_of_minus(T x) {
  const T small = std::exp(x < T{0} ? x : -x);
  return (x < T{0} ? T{1} : small) / (T{1} + small);
}

// The log-probabilities of a pair's answers under the trained model and under the reference model,
// and by how many tokens a loss divides them.
template <typename T>
struct AnswerPair {
  T chosen;
  T rejected;
  T reference_chosen;
  T reference_rejected;
  T chosen_tokens = T{1};
  T rejected_tokens = T{1};

  constexpr T chosen_score() const { return (chosen - reference_chosen) / chosen_tokens; }
  constexpr T rejected_score() const { return (rejected - reference_rejected) / rejected_tokens; }

  // The pair as it is measured where no model is compared with: what the loss compares, alone.
  constexpr AnswerPair compared() const { return {chosen_score(), rejected_score(), T{0}, T{0}}; }

  constexpr AnswerPair<double> in_double() const {
    return {static_cast<double>(chosen),           static_cast<double>(rejected),
            static_cast<double>(reference_chosen), static_cast<double>(reference_rejected),
            static_cast<double>(chosen_tokens),    static_cast<double>(rejected_tokens)};
  }

  constexpr T chosen_reward(T beta) const { return beta * (chosen - reference_chosen); }
  constexpr T rejected_reward(T beta) const { return beta * (rejected - reference_rejected); }
  constexpr T margin(T beta) const {
    return beta * ((chosen - reference_chosen) - (rejected - reference_rejected));
  }
};

}  // namespace snug::backends
