// From what is to be generated or scored to a planned job that fits the budget.
#pragma once

#include <cstdint>

#include "formats/recipe.h"
#include "models/config.h"
#include "plan/job.h"
#include "program/target.h"

namespace snug::generate {

// Sizes of a job; see plan::InferenceSpec.
struct InferenceShape {
  int64_t sequences = 1;
  int64_t capacity = 0;        // tokens a sequence may reach
  int64_t prefill_tokens = 0;  // of a chunk, at most: smaller where memory is short
  bool all_logits = false;
};

struct InferencePlan {
  plan::InferenceSpec spec;
  plan::Job job;
};

// Tokens that a prefill takes at once, if there are that many.
inline constexpr int64_t kPrefillTokens = 512;

// Plans with the largest chunk that fits (plan/fit.h): halved, down to kLeastPrefillTokens. Where
// host_memory is limited, makes the job ready once to see what lies outside the arenas. Throws
// UserError with exit code 3 and the cheapest change when none does; other UserErrors for an
// adapter that is not of this model.
inline constexpr int64_t kLeastPrefillTokens = 16;
InferencePlan plan_in_budget(const formats::Recipe& recipe, const models::ModelConfig& model,
                             const InferenceShape& shape, program::Target& target);

}  // namespace snug::generate
