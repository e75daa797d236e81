#include "generate/folder_sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/json.h"

namespace snug::generate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderSettings = "generation_config.json";
constexpr std::array kKeysInFile{"do_sample", "temperature", "top_k",
                                 "top_p",     "min_p",       "repetition_penalty"};
constexpr std::array kKeysOfSampling{
    "temperature",      "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty",
    "frequency_penalty"};
constexpr int64_t kTopKOfTransformers = 50;

std::string sampling_text(const engine::SamplingOptions& options) {
  std::string text = fmt::format("temperature={}", options.temperature);
  if (options.top_k > 0) text += fmt::format(" top_k={}", options.top_k);
  if (options.top_p < 1) text += fmt::format(" top_p={}", options.top_p);
  if (options.min_p > 0) text += fmt::format(" min_p={}", options.min_p);
  if (options.repetition_penalty != 1)
    text += fmt::format(" repetition_penalty={}", options.repetition_penalty);
  return text;
}

}  // namespace

std::optional<engine::SamplingOptions> sampling_of_file(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const nlohmann::json document = base::read_json_file(path);
  const base::JsonObject file(document, path.string());
  if (std::ranges::none_of(kKeysInFile, [&](const char* key) { return file.has(key); }))
    return std::nullopt;
  engine::SamplingOptions options;
  options.repetition_penalty = file.number_or("repetition_penalty", 1);
  if (file.boolean_or("do_sample", false)) {
    options.temperature = file.number_or("temperature", 1);
    options.top_k = file.integer_or("top_k", kTopKOfTransformers);
    options.top_p = file.number_or("top_p", 1);
    options.min_p = file.number_or("min_p", 0);
  }
  try {
    engine::check_sampling(options);
  } catch (const base::UserError& mistake) {
    base::throw_user_error("{}: {}; temperature= or another key of sampling leaves it aside",
                           path.string(), mistake.what());
  }
  return options;
}

formats::Recipe with_folder_sampling(formats::Recipe recipe, const models::ModelSource& model) {
  const auto is_given = [&](const char* key) { return recipe.is_given(key); };
  if (model.folder.empty() || std::ranges::any_of(kKeysOfSampling, is_given)) return recipe;
  std::vector<fs::path> files{model.folder / kFolderSettings};
  if (!recipe.adapter.empty())
    files.insert(files.begin(), fs::path(recipe.adapter) / kFolderSettings);
  for (const fs::path& path : files) {
    const std::optional<engine::SamplingOptions> options = sampling_of_file(path);
    if (!options) continue;
    recipe.temperature = options->temperature;
    recipe.top_k = options->top_k;
    recipe.top_p = options->top_p;
    recipe.min_p = options->min_p;
    recipe.repetition_penalty = options->repetition_penalty;
    base::say("sampling as {} says: {}; any key of sampling takes its place", path.string(),
              sampling_text(*options));
    break;
  }
  return recipe;
}

}  // namespace snug::generate
