// The losses of one pair of answers and their derivatives, the same in all backends. With
//
//   c, r = log-probability under the trained model minus that under the reference model, of what
//          was chosen and of what was rejected, where a loss compares means divided by the tokens
//   m = beta (c - r) - target_margin, s = sigmoid, l = log sigmoid, e = label_smoothing
//
//   sigmoid, sigmoid_norm  -(1 - e) l(m) - e l(-m)     Rafailov et al. 2023; e: Mitchell 2023;
//                                                      target_margin: Meng et al. 2024
//   hinge                  max(0, 1 - m)               Zhao et al. 2023
//   ipo                    (c - r - 1 / (2 beta))^2    Azar et al. 2023
//   exo_pair               s(m) (l(m) - log(1 - e)) + s(-m) (l(-m) - log e)   Ji et al. 2024
//   nca_pair               -l(beta c) - l(-beta c) / 2 - l(-beta r) / 2       Chen et al. 2024
//   robust                 (-(1 - e) l(m) + e l(-m)) / (1 - 2 e)              Chowdhury et al. 2024
//   bco_pair               -l(beta c) - l(-beta r)                            Jung et al. 2024
//   sppo_hard              (c - 1 / (2 beta))^2 + (r + 1 / (2 beta))^2        Wu et al. 2024
//   apo_zero               s(-beta c) + s(beta r)                  D'Oosterlinck et al. 2024
//   apo_down               s(beta c) + s(-m)                       the same
//
// T is float or double. Constexpr, so that kernels can call it directly.
#pragma once

#include "backends/formulas/answer_pair.h"
#include "base/preference_loss.h"

namespace snug::backends {

template <typename T>
struct PreferenceLossOptions {
  base::PreferenceLoss form;
  T beta;
  T smoothing;
  T target_margin = T{0};
};

// The loss of a pair, and its derivatives with respect to c and r.
template <typename T>
struct PairLoss {
  T value;
  T chosen_slope;
  T rejected_slope;
};

template <typename T>
constexpr T sigmoid_slope(T x) {
  return sigmoid_of_minus(x) * sigmoid_of_minus(-x);
}

// A loss of the margin alone: its value and its derivative with respect to the margin.
template <typename T>
constexpr PairLoss<T> of_margin(T value, T slope, T beta) {
  return {value, beta * slope, -beta * slope};
}

template <typename T>
constexpr PairLoss<T> squares(T chosen_error, T rejected_error) {
  return {chosen_error * chosen_error + rejected_error * rejected_error, T{2} * chosen_error,
          T{2} * rejected_error};
}

// The losses that depend on the margin m alone.
template <typename T>
constexpr PairLoss<T> margin_loss(const PreferenceLossOptions<T>& options, T m) {
  using base::PreferenceLoss;
  const T e = options.smoothing;
  // Minus the logarithms of sigmoid(m) and sigmoid(-m), and the two themselves.
  const T loss = minus_log_sigmoid(m);
  const T flipped = minus_log_sigmoid(-m);
  const T up = sigmoid_of_minus(-m);
  const T down = sigmoid_of_minus(m);
  switch (options.form) {
    case PreferenceLoss::hinge:
      return of_margin(m < T{1} ? T{1} - m : T{0}, m < T{1} ? T{-1} : T{0}, options.beta);
    case PreferenceLoss::exo_pair: {
      const T more = -loss - std::log1p(-e);
      const T less = -flipped - std::log(e);
      return of_margin(up * more + down * less, up * down * (more - less), options.beta);
    }
    case PreferenceLoss::robust: {
      const T share = T{1} / (T{1} - T{2} * e);
      return of_margin(share * ((T{1} - e) * loss - e * flipped),
                       -share * ((T{1} - e) * down + e * up), options.beta);
    }
    default:
      return of_margin((T{1} - e) * loss + e * flipped, e * up - (T{1} - e) * down, options.beta);
  }
}

template <typename T>
constexpr PairLoss<T> pair_loss(const PreferenceLossOptions<T>& options, T c, T r) {
  using base::PreferenceLoss;
  const T beta = options.beta;
  const T m = beta * (c - r) - options.target_margin;
  const T half = T{1} / T{2};
  const T target = half / beta;
  switch (options.form) {
    case PreferenceLoss::ipo: {
      const T error = c - r - target;
      return {error * error, T{2} * error, T{-2} * error};
    }
    case PreferenceLoss::nca_pair:
      return {minus_log_sigmoid(beta * c) + half * minus_log_sigmoid(-beta * c) +
                  half * minus_log_sigmoid(-beta * r),
              beta * (half * sigmoid_of_minus(-beta * c) - sigmoid_of_minus(beta * c)),
              beta * half * sigmoid_of_minus(-beta * r)};
    case PreferenceLoss::bco_pair:
      return {minus_log_sigmoid(beta * c) + minus_log_sigmoid(-beta * r),
              -beta * sigmoid_of_minus(beta * c), beta * sigmoid_of_minus(-beta * r)};
    case PreferenceLoss::sppo_hard:
      return squares(c - target, r + target);
    case PreferenceLoss::apo_zero:
      return {sigmoid_of_minus(beta * c) + sigmoid_of_minus(-beta * r),
              -beta * sigmoid_slope(beta * c), beta * sigmoid_slope(beta * r)};
    case PreferenceLoss::apo_down:
      return {sigmoid_of_minus(-beta * c) + sigmoid_of_minus(m),
              beta * (sigmoid_slope(beta * c) - sigmoid_slope(m)), beta * sigmoid_slope(m)};
    default:
      return margin_loss(options, m);
  }
}

}  // namespace snug::backends
