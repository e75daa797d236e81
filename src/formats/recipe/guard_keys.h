// The guards of a run: what goes wrong in training and stops it, and the words of `guards` that
// switch them off and on.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "base/words.h"
#include "formats/recipe/recipe.h"

namespace snug::formats {

enum class Guard : uint8_t {
  not_finite,        // a loss or a gradient norm is an infinity or no number
  zero_loss,         // the loss is exactly 0
  zero_norm,         // the gradient norm is exactly 0
  idle_adapter,      // an adapter whose B is still 0 after the warm-up
  loss_increase,     // the loss stays above max_loss_increase times its best
  worse_evaluation,  // evaluations are worse than the one before the first step
  equal_rewards,     // all answers to each prompt are rewarded alike
  cut_answers,       // no answer ends by itself
  low_entropy,       // answers hardly differ: their entropy stays below min_entropy
  high_kl,           // the model is further than max_kl from the one that training began with
};
constexpr auto words_of(Guard /*type*/) {
  return base::words<Guard>({{Guard::not_finite, "not_finite"},
                             {Guard::zero_loss, "zero_loss"},
                             {Guard::zero_norm, "zero_norm"},
                             {Guard::idle_adapter, "idle_adapter"},
                             {Guard::loss_increase, "loss_increase"},
                             {Guard::worse_evaluation, "worse_evaluation"},
                             {Guard::equal_rewards, "equal_rewards"},
                             {Guard::cut_answers, "cut_answers"},
                             {Guard::low_entropy, "low_entropy"},
                             {Guard::high_kl, "high_kl"}});
}

// Some of the guards.
class GuardSet {
 public:
  constexpr GuardSet() = default;
  constexpr GuardSet(std::initializer_list<Guard> guards) {
    for (const Guard guard : guards) bits_ = static_cast<uint16_t>(bits_ | bit(guard));
  }
  constexpr bool has(Guard guard) const { return (bits_ & bit(guard)) != 0; }
  constexpr void set(Guard guard, bool is_in) {
    bits_ = static_cast<uint16_t>(is_in ? bits_ | bit(guard) : bits_ & ~bit(guard));
  }
  // Those that are in both.
  constexpr GuardSet both(GuardSet other) const {
    GuardSet result;
    result.bits_ = static_cast<uint16_t>(bits_ & other.bits_);
    return result;
  }

 private:
  static constexpr uint16_t bit(Guard guard) {
    return static_cast<uint16_t>(1U << static_cast<unsigned>(guard));
  }
  uint16_t bits_ = 0;
};

inline constexpr GuardSet kAllGuards{
    Guard::not_finite,    Guard::zero_loss,        Guard::zero_norm,     Guard::idle_adapter,
    Guard::loss_increase, Guard::worse_evaluation, Guard::equal_rewards, Guard::cut_answers,
    Guard::low_entropy,   Guard::high_kl};

// Those that `guards` names: all, none, NAME, or no_NAME for all others. Throws UserError for
// another word.
GuardSet guards_of(const Recipe& recipe);

}  // namespace snug::formats
