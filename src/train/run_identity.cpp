#include "train/run_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "formats/recipe_keys.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;

constexpr auto kFixed = std::to_array<std::string_view>(
    {"method", "load_in_4bit", "double_quant", "init", "lora_r", "lora_alpha", "target_modules",
     "use_rslora", "optim", "max_length", "max_segments", "packing", "shuffle", "seed"});

// They change no number, or what they amount to is compared.
constexpr auto kLeftOut = std::to_array<std::string_view>({"model",
                                                           "adapter",
                                                           "data",
                                                           "eval_data",
                                                           "data_format",
                                                           "chat_template",
                                                           "train_on_prompt",
                                                           "compute_dtype",
                                                           "output_dir",
                                                           "overwrite_output_dir",
                                                           "resume_from_checkpoint",
                                                           "save_steps",
                                                           "save_total_limit",
                                                           "eval_steps",
                                                           "logging_steps",
                                                           "device_memory",
                                                           "host_memory",
                                                           "threads",
                                                           "calibration",
                                                           "backend",
                                                           "optim_in_backward",
                                                           "recompute",
                                                           "activation_offloading"});

// Keys of a method that the run does not use.
bool is_idle(const formats::Recipe& recipe, std::string_view key) {
  return recipe.method == formats::Method::full &&
         (key.starts_with("lora_") || key == "target_modules" || key == "use_rslora");
}

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string fingerprint(std::string_view bytes) {
  return fmt::format("{:016x}", base::hash_name(bytes.data(), bytes.size()));
}

// The last bytes of a file: the header of safetensors is the same for all models of a shape.
std::string tail_of(const fs::path& path) {
  constexpr int64_t kBytes = 64 << 10;
  const base::File file = base::File::open_for_reading(path);
  std::string tail(static_cast<size_t>(std::min(kBytes, file.size())), '\0');
  file.read_at(file.size() - static_cast<int64_t>(tail.size()), tail.data(),
               static_cast<int64_t>(tail.size()));
  return tail;
}

// Of config.json and of samples of the weights; of its name for a built-in shape.
std::string fingerprint_of(const models::ModelSource& model, const std::string& name) {
  if (model.folder.empty()) return name;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(model.folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string text = base::read_text_file(model.folder / "config.json");
  for (const fs::path& path : files) text += tail_of(path);
  return fingerprint(text);
}

}  // namespace

runtime::RunIdentity identity_of(const formats::Recipe& recipe, const models::ModelSource& model,
                                 const text::DocumentStore& documents) {
  runtime::RunIdentity identity;
  identity.fixed["the model"] = fingerprint_of(model, recipe.model);
  identity.fixed["the data"] = documents.fingerprint();
  for (const formats::RecipeKey& key : formats::recipe_keys()) {
    if (key.field.get == nullptr || !key.belongs_to(formats::Verb::train)) continue;
    if (is_one_of(kLeftOut, key.name) || is_idle(recipe, key.name)) continue;
    auto& group = is_one_of(kFixed, key.name) ? identity.fixed : identity.free;
    group[std::string(key.name)] = formats::value_text(key, key.field.get(recipe));
  }
  return identity;
}

void check_identity(const runtime::RunIdentity& saved, const runtime::RunIdentity& now,
                    const std::string& checkpoint) {
  const runtime::Differences found = runtime::differences(saved, now);
  if (!found.fixed.empty())
    base::throw_user_error(
        "{}: this checkpoint is of another run: {}; resume with what it was made with, or start a "
        "new run in another output_dir",
        checkpoint, fmt::join(found.fixed, ", "));
  for (const std::string& difference : found.free)
    fmt::print(stderr, "resuming with other numbers: {}\n", difference);
}

}  // namespace snug::train
