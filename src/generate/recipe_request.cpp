#include "generate/recipe_request.h"

#include <utility>

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
  if (recipe.regex.empty()) return nullptr;
  if (forms == nullptr)
    recipe.fail("regex", "is matched with text, but the model folder has no tokenizer");
  try {
    return forms->regex(recipe.regex);
  } catch (const base::UserError& error) {
    recipe.fail("regex", error.what());
  }
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
