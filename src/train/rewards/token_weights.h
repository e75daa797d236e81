// What a token of a rewarded answer counts in the loss of a step, by TRL's names of loss_type. The
// operation `grpo` reads a weight for each token, so that all of these are one computation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/words.h"

namespace snug::train {

enum class AnswerLoss : uint8_t {
  grpo,     // the mean over answers of the mean over an answer's tokens
  bnpo,     // the mean over the tokens of a micro-batch, and over micro-batches
  dr_grpo,  // the sum over tokens, divided by answers and by the longest length that they may have
  dapo,     // the mean over the tokens of the step
};
constexpr auto words_of(AnswerLoss /*type*/) {
  return base::words<AnswerLoss>({{AnswerLoss::grpo, "grpo"},
                                  {AnswerLoss::bnpo, "bnpo"},
                                  {AnswerLoss::dr_grpo, "dr_grpo"},
                                  {AnswerLoss::dapo, "dapo"}});
}

// The answers of a step, all micro-batches in turn.
struct StepAnswers {
  std::span<const int64_t> learned{};  // tokens of each answer that are learned, 0: it is masked
  int64_t per_micro_batch = 1;         // answers
  int64_t max_completion_length = 1;   // tokens
};

// (answers): what each learned token of an answer counts. An answer that is masked counts among the
// answers.
std::vector<double> token_weights(AnswerLoss loss, const StepAnswers& answers);

}  // namespace snug::train
