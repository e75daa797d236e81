// `snug tokenize`: text to ids and back, with the tokenizer of a model folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/console.h"
#include "base/error.h"
#include "cli/verbs.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::cli {
namespace {

text::Tokenizer tokenizer_of(const formats::Recipe& recipe) {
  recipe.require("model");
  if (models::preset(recipe.model))
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without a tokenizer; give a model "
                                     "folder",
                                     recipe.model));
  return text::Tokenizer::from_folder(models::find_model_folder(recipe.model).string());
}

std::vector<int32_t> ids_of(const formats::Recipe& recipe, int64_t vocabulary) {
  std::vector<int32_t> ids;
  for (const int64_t id : recipe.ids) {
    if (id >= vocabulary)
      recipe.fail("ids", fmt::format("holds {}, and the tokenizer has {} ids", id, vocabulary));
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

int decode(const text::Tokenizer& tokenizer, const formats::Recipe& recipe, bool json) {
  const std::string text = tokenizer.decode(ids_of(recipe, tokenizer.vocabulary_size()), false);
  if (json)
    base::print("{}\n", nlohmann::json{{"text", text}}.dump());
  else
    std::cout << text << '\n';  // without quoting or escaping
  return 0;
}

}  // namespace

int tokenize(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  const text::Tokenizer tokenizer = tokenizer_of(recipe);
  if (recipe.is_given("ids")) return decode(tokenizer, recipe, request.json);
  const std::string text =
      recipe.is_given("prompt")
          ? recipe.prompt
          : std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  const std::vector<int32_t> ids = tokenizer.encode(text);
  if (request.json)
    base::print("{}\n", nlohmann::json{{"ids", ids}}.dump());
  else
    base::print("{}\n", fmt::join(ids, " "));
  return 0;
}

}  // namespace snug::cli
