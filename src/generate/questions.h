// Reads the questions of recipe.data, with their answers.
#pragma once

#include <vector>

#include "engine/questions/question.h"
#include "formats/recipe/recipe.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

// Reads recipe.data: records of the forms that have an answer (engine/questions/question.h).
// `has_encoder`: prompts are an encoder's input, and conversations are not allowed. Reports fields
// that are not used, and messages that a chat template leaves out. Records that cannot be asked are
// left out or all named in a UserError, as recipe.on_bad_record says.
std::vector<engine::Question> read_questions(const formats::Recipe& recipe,
                                             const text::Tokenizer& tokenizer,
                                             bool has_encoder = false);

}  // namespace snug::generate
