#include "generate/folder_sampling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// A setting that changes transformers' answers and is not applied here.
struct ForeignSetting {
  enum class Counts { always, drawing, with_beams };
  const char* name;
  Counts counts = Counts::always;
  double neutral = 0;  // the number that changes nothing
};

constexpr auto kForeignSettings = std::to_array<ForeignSetting>({
    {.name = "num_beams", .neutral = 1},
    {.name = "num_beam_groups", .counts = ForeignSetting::Counts::with_beams, .neutral = 1},
    {.name = "diversity_penalty", .counts = ForeignSetting::Counts::with_beams},
    {.name = "length_penalty", .counts = ForeignSetting::Counts::with_beams, .neutral = 1},
    {.name = "early_stopping", .counts = ForeignSetting::Counts::with_beams},
    {.name = "typical_p", .counts = ForeignSetting::Counts::drawing, .neutral = 1},
    {.name = "epsilon_cutoff", .counts = ForeignSetting::Counts::drawing},
    {.name = "eta_cutoff", .counts = ForeignSetting::Counts::drawing},
    {.name = "top_h", .counts = ForeignSetting::Counts::drawing, .neutral = 1},
    {.name = "penalty_alpha"},
    {.name = "dola_layers"},
    {.name = "guidance_scale", .neutral = 1},
    {.name = "no_repeat_ngram_size"},
    {.name = "encoder_no_repeat_ngram_size"},
    {.name = "encoder_repetition_penalty", .neutral = 1},
    {.name = "exponential_decay_length_penalty"},
    {.name = "min_length"},
    {.name = "min_new_tokens"},
    {.name = "bad_words_ids"},
    {.name = "force_words_ids"},
    {.name = "constraints"},
    {.name = "sequence_bias"},
    {.name = "forced_bos_token_id", .neutral = -1},
    {.name = "forced_eos_token_id", .neutral = -1},
    {.name = "suppress_tokens"},
    {.name = "begin_suppress_tokens"},
    {.name = "stop_strings"},
    {.name = "watermarking_config"},
});

bool changes_answers(const ForeignSetting& setting, const nlohmann::json& file) {
  using Counts = ForeignSetting::Counts;
  const auto value = [&](const char* name) {
    const auto found = file.find(name);
    return found == file.end() ? nlohmann::json() : *found;
  };
  if (setting.counts == Counts::drawing && value("do_sample") != true) return false;
  if (setting.counts == Counts::with_beams &&
      !(value("num_beams").is_number() && value("num_beams").get<double>() > 1))
    return false;
  const nlohmann::json set = value(setting.name);
  if (set.is_number()) return set != setting.neutral;
  return !set.empty() && set != false;
}

// Says, in one line, what of the file changes transformers' answers alone.
void tell_foreign_settings(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const nlohmann::json file = base::read_json_file(path);
  std::vector<std::string> found;
  for (const ForeignSetting& setting : kForeignSettings)
    if (changes_answers(setting, file))
      found.push_back(fmt::format("{}={}", setting.name, file[setting.name].dump()));
  if (!found.empty()) base::say("{}: not applied: {}", path.string(), fmt::join(found, ", "));
}

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
    tell_foreign_settings(path);
    if (!options) continue;
    recipe.temperature = options->temperature;
    recipe.top_k = options->top_k;
    recipe.top_p = options->top_p;
    recipe.min_p = options->min_p;
    recipe.repetition_penalty = options->repetition_penalty;
    base::say("sampling as {} says: {}; any of {} takes its place", path.string(),
              sampling_text(*options), fmt::join(kKeysOfSampling, ", "));
    break;
  }
  return recipe;
}

}  // namespace snug::generate
