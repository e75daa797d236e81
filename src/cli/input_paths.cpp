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
  // What cannot be looked at is there: whoever opens it says why it cannot be read.
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

// What to do where it was meant as a name of the hub and no path; empty where it cannot be one.
std::string hub_advice(std::string_view value) {
  const auto name = formats::parse_hub_name(value);
  if (!name) return "";
  return fmt::format("; a model of the Hugging Face hub is fetched with '{}'",
                     name->download_command());
}

// Where it was meant as the name of a data set of the hub, or of another tool's list.
std::string data_advice(std::string_view /*value*/) {
  return "; data are files here, of the form JSON, JSONL or text: a data set of the hub is "
         "downloaded, and its records written into one";
}

std::string template_advice(std::string_view /*value*/) {
  return fmt::format("; built in are {}, and without chat_template the model's own is taken",
                     text::kChatForms);
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
  bool (*is_word)(std::string_view);  // it has a meaning that goes before any path
  bool (*is_name)(std::string_view);  // it has one where no path is there
  bool (*is_path)(const fs::path&);
  std::string (*advice)(std::string_view);  // ends the error where it is at neither place
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
  // An absolute value stays what it is, and has one place.
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
