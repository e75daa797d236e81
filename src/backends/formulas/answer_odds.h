// The arithmetic of the odds ratio of a pair of answers, the same in all backends: T is float or
// double. Constexpr, so that kernels can call it directly.
#pragma once

#include <cmath>
#include <cstdint>

#include "backends/formulas/answer_pair.h"

namespace snug::backends {

// log(1 - exp(x)) for x < 0, by whichever form avoids cancellation.
template <typename T>
constexpr T log_of_rest(T x) {
  constexpr auto kLogTwo = static_cast<T>(0.693147180559945309);
  return x < -kLogTwo ? std::log1p(-std::exp(x)) : std::log(-std::expm1(x));
}

// The mean of an answer's log-probabilities, given their sum over the tokens [begin, end), the last
// of which predicts nothing. It is limited to a value just below 0 that f32 can tell from 0.
template <typename T>
constexpr T answer_mean(T sum, int32_t begin, int32_t end) {
  constexpr T kMost{-0x1p-24};
  const T mean = sum / static_cast<T>(end - begin > 1 ? end - begin - 1 : 1);
  return mean < kMost ? mean : kMost;
}

// The mean log-probabilities of a pair's answers.
template <typename T>
struct AnswerOdds {
  T chosen;
  T rejected;

  constexpr T log_odds() const {
    return (chosen - rejected) - (log_of_rest(chosen) - log_of_rest(rejected));
  }
  // The derivative of -log sigmoid(log_odds) with respect to log_odds, with opposite sign.
  constexpr T slope() const { return sigmoid_of_minus(log_odds()); }
  // The derivative of the log odds of a mean with respect to the mean: 1 / (1 - exp(mean)).
  static constexpr T odds_slope(T mean) { return T{-1} / std::expm1(mean); }
};

// `bounds` (2 pairs, 2) are those of the answers.
template <typename T>
constexpr AnswerOdds<T> answer_odds(T chosen, T rejected, const int32_t* bounds) {
  return {answer_mean(chosen, bounds[0], bounds[1]), answer_mean(rejected, bounds[2], bounds[3])};
}

}  // namespace snug::backends
