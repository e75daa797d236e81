// The records of evaluation sets whose answers a run generates (eval_generate), and what is
// measured of these answers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/questions/question.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "scores/score.h"
#include "text/row/held_out.h"
#include "text/row/record_source.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::train {

// What answers are judged by: recipe.eval_metrics; nothing where none are generated. Throws
// UserError for scores that there are not.
std::vector<scores::Score> answer_scores(const formats::Recipe& recipe);

// The names in metrics of what an evaluation measures of a set besides its loss: those of the
// objective, then those of answer_scores; of an objective that makes answers, what is measured of
// answers that these functions reward.
std::vector<std::string> evaluation_measures(const formats::Recipe& recipe,
                                             std::span<const std::string> reward_functions);

// One evaluation set, as it is read.
struct AskedSet {
  const std::vector<text::RecordSource>& sources;
  std::optional<text::HeldOut> held_out{};  // only these records of the sources
  int64_t prompt_tokens = 0;                // longer prompts are left out
};

// The questions of the first recipe.eval_generate records of the set that can be asked, in their
// order. Says how many records before the last of them cannot be, and why. Throws UserError where
// none can, where a score has no use for what a record expects, and where the model has no
// positions left for an answer.
std::vector<engine::Question> asked_questions(const formats::Recipe& recipe, const AskedSet& set,
                                              const models::ModelConfig& model,
                                              const text::Tokenizer& tokenizer);

}  // namespace snug::train
