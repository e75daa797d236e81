// What a recipe says of a request to the engine: how tokens are chosen, and what ends an answer.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/answer_forms.h"
#include "engine/request.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/inference_shape.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

engine::SamplingOptions recipe_sampling(const formats::Recipe& recipe);

// Nothing where the recipe asks for no log-probabilities.
std::optional<int64_t> recipe_log_probabilities(const formats::Recipe& recipe);

// The form that the recipe holds answers to; null where it names none. `forms`: null where the
// model has no tokenizer. Throws UserError.
engine::AnswerForms::Form recipe_form(const formats::Recipe& recipe, engine::AnswerForms* forms);

// The shape with the guesses that the recipe asks for.
plan::InferenceShape with_guesses(const formats::Recipe& recipe, plan::InferenceShape shape);

// Throws UserError where the recipe asks for guesses that cannot be verified for such a request.
void check_guesses(const formats::Recipe& recipe, const engine::Request& request);

// These ids and texts. A text that is a special token, which decoded text does not show, stops by
// its id. `tokenizer`: null where there is no text.
engine::AnswerEnd answer_end(std::vector<int32_t> ids, const std::vector<std::string>& texts,
                             const text::Tokenizer* tokenizer);

// Whether the model's folder has the files of a tokenizer.
bool has_tokenizer(const models::ModelSource& model);

}  // namespace snug::generate
