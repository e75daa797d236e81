// What is looked at before questions are asked: whether there is room for answers, and whether they
// can be judged. Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "engine/questions/question.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "scores/score.h"

namespace snug::engine {

// The number of new tokens for which there is room after the longest of these prompts (new_tokens
// of prompt.h). Throws UserError, at that prompt's record, where there is none.
int64_t room_for_answers(const formats::Recipe& recipe, const models::ModelConfig& model,
                         std::span<const Question> questions);

// Throws UserError, at its record, for an expected text that a metric cannot compare answers with.
void check_expected(std::span<const scores::Score> metrics, std::span<const Question> questions);

}  // namespace snug::engine
