#include "generate/recipe_request.h"

#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "engine/request_shape.h"
#include "text/tokenizer/sentencepiece_folder.h"

namespace snug::generate {

engine::SamplingOptions recipe_sampling(const formats::Recipe& recipe) {
  return {.temperature = recipe.temperature,
          .top_k = recipe.top_k,
          .top_p = recipe.top_p,
          .min_p = recipe.min_p,
          .repetition_penalty = recipe.repetition_penalty,
          .presence_penalty = recipe.presence_penalty,
          .frequency_penalty = recipe.frequency_penalty,
          .seed = recipe.seed};
}

std::optional<int64_t> recipe_log_probabilities(const formats::Recipe& recipe) {
  return recipe.logprobs < 0 ? std::nullopt : std::optional(recipe.logprobs);
}

engine::AnswerForms::Form recipe_form(const formats::Recipe& recipe, engine::AnswerForms* forms) {
  const bool has_regex = !recipe.regex.empty();
  if (!has_regex && recipe.json_schema.empty()) return nullptr;
  const char* const key = has_regex ? "regex" : "json_schema";
  if (has_regex && !recipe.json_schema.empty())
    recipe.fail(key, "is given next to json_schema; an answer follows one of the two");
  if (forms == nullptr) recipe.fail(key, "is about text, but the model folder has no tokenizer");
  try {
    if (has_regex) return forms->regex(recipe.regex);
    return forms->json_schema(base::read_text_file(recipe.json_schema), recipe.json_schema);
  } catch (const base::UserError& error) {
    recipe.fail(key, error.what());
  }
}

plan::InferenceShape with_guesses(const formats::Recipe& recipe, plan::InferenceShape shape) {
  if (recipe.prompt_lookup_num_tokens > 0)
    plan::allow_guesses(shape, recipe.prompt_lookup_num_tokens);
  return shape;
}

void check_guesses(const formats::Recipe& recipe, const engine::Request& request) {
  if (recipe.prompt_lookup_num_tokens == 0 || engine::can_be_guessed(request)) return;
  recipe.fail(
      "prompt_lookup_num_tokens",
      "guesses what is verified for the likeliest tokens alone: give temperature=0, without "
      "penalties, regex, json_schema and logprobs, or leave it out");
}

engine::AnswerEnd answer_end(std::vector<int32_t> ids, const std::vector<std::string>& texts,
                             const text::Tokenizer* tokenizer) {
  if (tokenizer != nullptr)
    for (const std::string& stop : texts)
      if (const auto id = tokenizer->id_of(stop); id && tokenizer->is_special(*id))
        ids.push_back(*id);
  return {.ids = std::move(ids), .texts = texts};
}

bool has_tokenizer(const models::ModelSource& model) {
  return !model.folder.empty() && !text::find_tokenizer_file(model.folder.string()).empty();
}

}  // namespace snug::generate
