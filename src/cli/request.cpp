#include "cli/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/console.h"
#include "base/error.h"
#include "cli/input_paths.h"
#include "comm/self_launch.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::cli {
namespace {

// "lora_rank=8" -> "lora_r": the key that a name or alias stands for; the name itself when unknown.
std::string_view key_of(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  const formats::RecipeKey* key = formats::find_recipe_key(name);
  return key == nullptr ? name : key->name;
}

void add_override(Request& request, const std::string& word) {
  std::erase_if(request.overrides,
                [&](const std::string& earlier) { return key_of(earlier) == key_of(word); });
  request.overrides.push_back(word);
}

// False, too, for what no file can be called, such as a text longer than the system's names.
bool is_file(const std::string& word) {
  std::error_code error;
  return std::filesystem::is_regular_file(word, error);
}

void set_file(Request& request, const std::string& word) {
  std::error_code error;
  if (!std::filesystem::exists(word, error))
    base::throw_user_error(
        "'{}' is neither a recipe file that exists nor of the form key=value (as in max_steps=50)",
        word);
  if (!request.recipe_file.empty())
    base::throw_user_error("two recipe files are given, '{}' and '{}'; give one",
                           request.recipe_file, word);
  request.recipe_file = word;
}

// One of the processes that were started with the same words speaks: the one that launched the
// others, or the first.
bool is_for_others_to_say() {
  return comm::is_self_launched(comm::environment()) || !comm::is_first_rank();
}

// What a recipe says of generation has no part in training, except a system message, which is
// refused there. A recipe of training, which has all its keys, is not told so by the verbs that
// generate.
std::string note_on_other_verbs(const formats::Recipe& recipe,
                                std::span<const std::string_view> keys) {
  if (std::ranges::find(keys, "learning_rate") == keys.end()) return "";
  std::string names;
  std::string file;
  for (const auto& [key, where] : recipe.given) {
    if (where.line == 0 || std::ranges::find(keys, key) != keys.end()) continue;
    const formats::RecipeKey* row = formats::find_recipe_key(key);
    if (row == nullptr || row->verbs == 0 || key == "system") continue;
    names += fmt::format("{}'{}' (line {})", names.empty() ? "" : ", ", key, where.line);
    file = where.file;
  }
  return names.empty() ? "" : fmt::format("{}: {}: not used in training", file, names);
}

// Other tools put a recipe's system message before the records that have none.
void refuse_system_in_training(const formats::Recipe& recipe,
                               std::span<const std::string_view> keys) {
  const bool trains = std::ranges::find(keys, "learning_rate") != keys.end();
  if (!trains || recipe.system.empty()) return;
  recipe.fail("system",
              "is not put before records in training: a system message stands in the records; add "
              "it to them, and give system= on the command line of 'snug generate'");
}

}  // namespace

void Request::take_words(const std::function<bool(const std::string&, const std::string&)>& take) {
  std::erase_if(overrides, [&](const std::string& word) {
    const size_t equals = word.find('=');
    return take(word.substr(0, equals), word.substr(equals + 1));
  });
}

formats::Recipe Request::recipe(std::span<const std::string_view> may_be_missing) const {
  formats::RecipeReading reading = formats::read_recipe(recipe_file, overrides);
  const auto say = is_for_others_to_say() ? base::log_line : base::say_line;
  for (const std::string& note : reading.recipe.notes) say(note);
  if (const std::string note = note_on_other_verbs(reading.recipe, keys); !note.empty()) say(note);
  reading.mistakes.gather([&] { refuse_system_in_training(reading.recipe, keys); });
  reading.mistakes.gather([&] { find_inputs(reading.recipe, keys, may_be_missing); });
  reading.mistakes.throw_if_any();
  return std::move(reading.recipe);
}

Request make_request(const std::vector<std::string>& words, bool json) {
  Request request;
  request.json = json;
  for (const std::string& word : words)
    if (word.find('=') != std::string::npos && !is_file(word))
      add_override(request, word);
    else
      set_file(request, word);
  return request;
}

}  // namespace snug::cli
