// What a token of a rewarded answer counts in the loss of a step, by TRL's names of loss_type. The
// operation `grpo` reads a weight for each token, so that all of these are one computation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/recipe/choices.h"

namespace snug::train {

using formats::AnswerLoss;

// The answers of a step, all micro-batches in turn.
struct StepAnswers {
  std::span<const int64_t> learned{};  // tokens of each answer that are learned, 0: it is masked
  // What dapo divides by; 0: the sum of `learned`.
  double step_tokens = 0;
  int64_t per_micro_batch = 1;        // answers
  int64_t max_completion_length = 1;  // tokens
};

// (answers): what each learned token of an answer counts. An answer that is masked counts among the
// answers.
std::vector<double> token_weights(AnswerLoss loss, const StepAnswers& answers);

}  // namespace snug::train
