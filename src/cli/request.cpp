#include "cli/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/console.h"
#include "base/error.h"
#include "cli/gguf_model.h"
#include "cli/input_paths.h"
#include "comm/self_launch.h"
#include "formats/recipe/recipe_keys.h"

namespace snug::cli {
namespace {

// Maps "lora_rank=8" to "lora_r": the key that a name or an alias stands for, or the name itself
// where it is unknown.
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

// Also false for text that cannot be a file name, such as text longer than the system allows.
bool is_file(const std::string& word) {
  std::error_code error;
  return std::filesystem::is_regular_file(word, error);
}

bool is_folder(const std::string& word) {
  std::error_code error;
  return std::filesystem::is_directory(word, error);
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

// Only one of the processes that were started with the same arguments prints: the one that launched
// the others, or the first rank.
bool is_for_others_to_say() {
  return comm::is_self_launched(comm::environment()) || !comm::is_first_rank();
}

// A note about keys of generation in a training recipe, which have no effect there. A system
// message is refused instead (see below). The verbs that generate print no such note about training
// keys, since they are often given a full training recipe.
std::string note_on_other_verbs(const formats::Recipe& recipe,
                                std::span<const std::string_view> keys) {
  if (std::ranges::find(keys, "learning_rate") == keys.end()) return "";
  std::string names;
  std::string file;
  for (const auto& [key, where] : recipe.given) {
    const formats::RecipeKey* row = formats::find_recipe_key(key);  // under any of its names
    if (where.line == 0 || row == nullptr || row->verbs == 0 || row->name == "system") continue;
    if (std::ranges::find(keys, row->name) != keys.end()) continue;
    names += fmt::format("{}'{}' (line {})", names.empty() ? "" : ", ", key, where.line);
    file = where.file;
  }
  return names.empty() ? "" : fmt::format("{}: {}: not used in training", file, names);
}

// Refused because other tools would insert a recipe's system message into the records that have
// none.
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
  formats::Recipe& recipe = reading.recipe;
  const bool reads_model = std::ranges::find(keys, "model") != keys.end();
  if (reads_model && is_gguf_model(recipe.model))
    recipe.model = folder_of_gguf(recipe.model).string();
  return std::move(recipe);
}

Request make_request(const std::vector<std::string>& words, bool json, bool takes_folders) {
  Request request;
  request.json = json;
  for (const std::string& word : words)
    if (word.find('=') != std::string::npos && !(takes_folders ? is_folder(word) : is_file(word)))
      add_override(request, word);
    else if (takes_folders)
      request.folders.push_back(word);
    else
      set_file(request, word);
  return request;
}

}  // namespace snug::cli
