// How the log-probabilities of two answers become a loss, by TRL's names of loss_type. What each
// computes: backends/formulas/preference_loss.h.
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::base {

enum class PreferenceLoss : uint8_t {
  sigmoid,
  hinge,
  ipo,
  exo_pair,
  nca_pair,
  robust,
  bco_pair,
  sppo_hard,
  apo_zero,
  apo_down,
  sigmoid_norm,
};
constexpr auto words_of(PreferenceLoss /*type*/) {
  return words<PreferenceLoss>({{PreferenceLoss::sigmoid, "sigmoid"},
                                {PreferenceLoss::hinge, "hinge"},
                                {PreferenceLoss::ipo, "ipo"},
                                {PreferenceLoss::exo_pair, "exo_pair"},
                                {PreferenceLoss::nca_pair, "nca_pair"},
                                {PreferenceLoss::robust, "robust"},
                                {PreferenceLoss::bco_pair, "bco_pair"},
                                {PreferenceLoss::sppo_hard, "sppo_hard"},
                                {PreferenceLoss::apo_zero, "apo_zero"},
                                {PreferenceLoss::apo_down, "apo_down"},
                                {PreferenceLoss::sigmoid_norm, "sigmoid_norm"}});
}

// Whether the loss compares means over the tokens of an answer, and not their sums.
constexpr bool compares_means(PreferenceLoss loss) {
  return loss == PreferenceLoss::ipo || loss == PreferenceLoss::sigmoid_norm;
}

}  // namespace snug::base
