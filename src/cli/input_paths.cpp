#include "cli/input_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "formats/folder/hub_cache.h"
#include "models/config/config.h"
#include "text/chat/chat_forms.h"
#include "text/chat/chat_template.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using formats::Recipe;

bool is_there(const fs::path& path) {
  std::error_code error;
  // A path that cannot be checked counts as present: opening it later reports why it cannot be
  // read.
  return fs::exists(path, error) || error;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_in_hub_cache(std::string_view value) {
  const auto name = formats::parse_hub_name(value);
  return name && formats::find_in_hub_cache(*name);
}

// Advice for a value that looks like a Hugging Face hub name rather than a path; empty where it
// cannot be one.
std::string hub_advice(std::string_view value) {
  const auto name = formats::parse_hub_name(value);
  if (!name) return "";
  return fmt::format("; a model of the Hugging Face hub is fetched with '{}'",
                     name->download_command());
}

// Advice for a value that was meant as the name of a hub data set, or of a data set registered with
// another tool.
std::string data_advice(std::string_view /*value*/) {
  return "; data are files here, of the form JSON, JSONL or text: a data set of the hub is "
         "downloaded, and its records written into one";
}

std::string template_advice(std::string_view /*value*/) {
  return fmt::format("; built in are {}, and without chat_template the model's own is taken",
                     text::chat_form_names());
}

std::string no_advice(std::string_view /*value*/) { return ""; }

bool is_nothing_else(std::string_view /*value*/) { return false; }

bool is_model_name(std::string_view value) { return models::preset(value).has_value(); }

bool is_checkpoint_word(std::string_view value) {
  return base::from_word<formats::Resume>(value).has_value();
}

struct InputKey {
  std::string_view name;
  std::string Recipe::*value;
  // The value is a word with a meaning of its own, which takes precedence over a path.
  bool (*is_word)(std::string_view);
  // The value has such a meaning, but only where no such path exists.
  bool (*is_name)(std::string_view);
  bool (*is_path)(const fs::path&);
  // The end of the error message where the file is at neither place.
  std::string (*advice)(std::string_view);
};

constexpr std::array kInputs{
    InputKey{"model", &Recipe::model, is_model_name, is_in_hub_cache, is_folder, hub_advice},
    InputKey{"adapter", &Recipe::adapter, is_nothing_else, is_nothing_else, is_there, no_advice},
    InputKey{"data", &Recipe::data, is_nothing_else, is_nothing_else, is_there, data_advice},
    InputKey{"eval_data", &Recipe::eval_data, is_nothing_else, is_nothing_else, is_there,
             data_advice},
    InputKey{"chat_template", &Recipe::chat_template, text::is_chat_template_name, is_nothing_else,
             is_there, template_advice},
    InputKey{"resume_from_checkpoint", &Recipe::resume_from_checkpoint, is_checkpoint_word,
             is_nothing_else, is_there, no_advice},
    InputKey{"calibration", &Recipe::calibration, is_nothing_else, is_nothing_else, is_there,
             no_advice},
    InputKey{"hardware", &Recipe::hardware, is_nothing_else, is_nothing_else, is_there, no_advice}};

bool holds(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_from_file(const Recipe& recipe, std::string_view key) {
  const auto given = recipe.given.find(key);
  return given != recipe.given.end() && given->second.line > 0;
}

void find_input(Recipe& recipe, const InputKey& key, bool may_be_missing) {
  std::string& value = recipe.*key.value;
  if (!is_from_file(recipe, key.name) || value.empty() || key.is_word(value)) return;
  if (key.is_path(value)) return;
  const fs::path folder = fs::path(recipe.given.find(key.name)->second.file).parent_path();
  // Joining an absolute path to the folder leaves it unchanged, so there is only one place to look.
  const std::string next_to_recipe = (folder / value).lexically_normal().string();
  if (key.is_path(next_to_recipe)) {
    value = next_to_recipe;
    return;
  }
  const bool has_two_places = fs::path(next_to_recipe) != fs::path(value).lexically_normal();
  if (!has_two_places || may_be_missing || key.is_name(value)) return;
  recipe.fail(key.name, fmt::format("is {}, which is neither in the current folder nor next to the "
                                    "recipe: there is no {} and no {}{}",
                                    value, value, next_to_recipe, key.advice(value)));
}

}  // namespace

void find_inputs(Recipe& recipe, std::span<const std::string_view> keys,
                 std::span<const std::string_view> may_be_missing) {
  base::Mistakes mistakes;
  for (const InputKey& key : kInputs)
    if (holds(keys, key.name))
      mistakes.gather([&] { find_input(recipe, key, holds(may_be_missing, key.name)); });
  mistakes.throw_if_any();
}

}  // namespace snug::cli
