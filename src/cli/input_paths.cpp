#include "cli/input_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/gguf_model.h"
#include "formats/data/data_files.h"
#include "formats/data/missing_data.h"
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

bool is_model(const fs::path& path) { return is_folder(path) || is_gguf_model(path.string()); }

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

bool is_data(const fs::path& path) { return formats::is_data_there(path.string()); }

bool is_data_name(std::string_view value) {
  return formats::is_data_in_hub_cache(std::string(value));
}

std::string data_advice(std::string_view value) {
  return formats::missing_data_advice(std::string(value));
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

template <std::string Recipe::*member>
std::vector<std::string*> text_of(Recipe& recipe) {
  return {&(recipe.*member)};
}

template <std::vector<formats::DataEntry> Recipe::*member>
std::vector<std::string*> paths_of(Recipe& recipe) {
  std::vector<std::string*> paths;
  for (formats::DataEntry& entry : recipe.*member) paths.push_back(&entry.path);
  return paths;
}

struct InputKey {
  std::string_view name;
  std::vector<std::string*> (*values)(Recipe&);
  // The value is a word with a meaning of its own, which takes precedence over a path.
  bool (*is_word)(std::string_view);
  // The value has such a meaning, but only where no such path exists.
  bool (*is_name)(std::string_view);
  bool (*is_path)(const fs::path&);
  // The end of the error message where the file is at neither place.
  std::string (*advice)(std::string_view);
};

constexpr std::array kInputs{
    InputKey{"model", text_of<&Recipe::model>, is_model_name, is_in_hub_cache, is_model,
             hub_advice},
    InputKey{"adapter", text_of<&Recipe::adapter>, is_nothing_else, is_nothing_else, is_there,
             no_advice},
    InputKey{"data", paths_of<&Recipe::data>, is_nothing_else, is_data_name, is_data, data_advice},
    InputKey{"eval_data", paths_of<&Recipe::eval_data>, is_nothing_else, is_data_name, is_data,
             data_advice},
    InputKey{"chat_template", text_of<&Recipe::chat_template>, text::is_chat_template_name,
             is_nothing_else, is_there, template_advice},
    InputKey{"resume_from_checkpoint", text_of<&Recipe::resume_from_checkpoint>, is_checkpoint_word,
             is_nothing_else, is_there, no_advice},
    InputKey{"calibration", text_of<&Recipe::calibration>, is_nothing_else, is_nothing_else,
             is_there, no_advice},
    InputKey{"prompts", text_of<&Recipe::prompts>, is_nothing_else, is_nothing_else, is_there,
             no_advice},
    InputKey{"tasks", text_of<&Recipe::tasks>, is_nothing_else, is_nothing_else, is_there,
             no_advice},
    InputKey{"hardware", text_of<&Recipe::hardware>, is_nothing_else, is_nothing_else, is_there,
             no_advice}};

bool holds(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_from_file(const Recipe& recipe, std::string_view key) {
  const auto given = recipe.given.find(key);
  return given != recipe.given.end() && given->second.line > 0;
}

void find_input(const Recipe& recipe, const InputKey& key, std::string& value,
                bool may_be_missing) {
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
  std::string advice = key.advice(value);
  if (advice.empty()) advice = key.advice(next_to_recipe);
  recipe.fail(key.name, fmt::format("is {}, which is neither in the current folder nor next to the "
                                    "recipe: there is no {} and no {}{}",
                                    value, value, next_to_recipe, advice));
}

}  // namespace

void find_inputs(Recipe& recipe, std::span<const std::string_view> keys,
                 std::span<const std::string_view> may_be_missing) {
  base::Mistakes mistakes;
  for (const InputKey& key : kInputs)
    if (holds(keys, key.name))
      for (std::string* value : key.values(recipe))
        mistakes.gather([&] { find_input(recipe, key, *value, holds(may_be_missing, key.name)); });
  mistakes.throw_if_any();
}

}  // namespace snug::cli
