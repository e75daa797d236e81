#include "generate/recipe_request.h"

#include <filesystem>
#include <utility>

#include "text/tokenizer/sentencepiece_folder.h"

namespace snug::generate {
namespace {

// As far as the engine has them.
template <typename Options>
void add_penalties(const formats::Recipe& recipe, Options& options) {
  if constexpr (requires { options.min_p + options.presence_penalty; }) {
    options.min_p = recipe.min_p;
    options.presence_penalty = recipe.presence_penalty;
    options.frequency_penalty = recipe.frequency_penalty;
  }
}

}  // namespace

engine::SamplingOptions recipe_sampling(const formats::Recipe& recipe) {
  engine::SamplingOptions options{.temperature = recipe.temperature,
                                  .top_k = recipe.top_k,
                                  .top_p = recipe.top_p,
                                  .repetition_penalty = recipe.repetition_penalty,
                                  .seed = recipe.seed};
  add_penalties(recipe, options);
  return options;
}

std::optional<int64_t> recipe_log_probabilities(const formats::Recipe& recipe) {
  return recipe.logprobs < 0 ? std::nullopt : std::optional(recipe.logprobs);
}

engine::AnswerEnd recipe_end(const formats::Recipe& recipe, std::vector<int32_t> ids,
                             const text::Tokenizer* tokenizer) {
  if (tokenizer != nullptr)
    for (const std::string& stop : recipe.stop)
      if (const auto id = tokenizer->id_of(stop); id && tokenizer->is_special(*id))
        ids.push_back(*id);
  return {.ids = std::move(ids), .texts = recipe.stop};
}

bool has_tokenizer(const models::ModelSource& model) {
  return !model.folder.empty() && (std::filesystem::exists(model.folder / "tokenizer.json") ||
                                   !text::find_sentencepiece(model.folder.string()).empty());
}

}  // namespace snug::generate
