#include "train/run_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "formats/recipe/method_keys.h"
#include "formats/recipe/recipe_keys.h"
#include "formats/recipe/schedule_keys.h"
#include "methods/objective.h"
#include "plan/spec/objective_spec.h"

namespace snug::train {
namespace {

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Keys of a method, an objective or a schedule that the run does not use.
bool is_idle(const formats::Recipe& recipe, std::string_view key) {
  constexpr std::array kOfObjectives{"objective", "beta", "loss_type", "label_smoothing",
                                     "precompute_ref_log_probs"};
  if (key == "label_smoothing_factor")
    return !methods::objective_of(recipe.objective).is_token_mean;
  if (key == "simpo_gamma") return recipe.objective != formats::Objective::simpo;
  if (is_one_of(kOfObjectives, key)) return recipe.objective == formats::Objective::next_token;
  if (plan::is_key_of_rewards(key)) return !methods::objective_of(recipe.objective).makes_answers;
  constexpr std::array kOfLabels{"desirable_weight", "undesirable_weight"};
  if (is_one_of(kOfLabels, key)) return !methods::objective_of(recipe.objective).is_labelled;
  constexpr std::array kOfFp16{"loss_scale", "initial_scale_power"};
  if (is_one_of(kOfFp16, key)) return recipe.compute_dtype != formats::ComputeDtype::fp16;
  if (key == "max_target_length") return recipe.max_target_length == 0;
  if (formats::is_schedule_key(key))
    return !is_one_of(formats::schedule_keys_of(recipe.lr_scheduler_type).keys, key);
  return formats::is_idle_key(recipe.method, key);
}

// Where answers are exchanged between the rows of a micro-batch, its size decides the documents.
bool is_fixed(const formats::Recipe& recipe, const formats::RecipeKey& key) {
  if (key.on_resume == formats::OnResume::fixed) return true;
  return key.name == "per_device_train_batch_size" && plan::mismatch_batch(recipe) > 0;
}

// Known once it was read, which takes as long as reading the model.
constexpr const char* kWeights = "the model";
constexpr const char* kAdapter = "the start adapter";

// The entries that are known once files were read, or the others.
runtime::RunIdentity part_of(runtime::RunIdentity identity, bool were_read) {
  std::erase_if(identity.fixed, [&](const auto& entry) {
    return (entry.first == kWeights || entry.first == kAdapter) != were_read;
  });
  return identity;
}

std::string parts_text(const std::vector<text::EpochPart>& parts) {
  std::vector<std::string> texts;
  texts.reserve(parts.size());
  for (const text::EpochPart& part : parts)
    texts.push_back(fmt::format("{} of {}", part.taken, part.groups));
  return fmt::format("{}", fmt::join(texts, ", "));
}

void refuse(const std::vector<std::string>& differences, const std::string& checkpoint) {
  if (differences.empty()) return;
  base::throw_user_error(
      "{}: this checkpoint is of another run: {}; resume with what it was made with, or start a "
      "new run in another output_dir",
      checkpoint, fmt::join(differences, ", "));
}

}  // namespace

runtime::RunIdentity identity_of(const formats::Recipe& recipe, const models::ModelSource& model,
                                 const text::RowSource& rows) {
  runtime::RunIdentity identity;
  if (model.folder.empty())
    identity.fixed[kWeights] = recipe.model;
  else
    identity.fixed["config.json"] =
        base::checksum_text(base::checksum(base::read_text_file(model.folder / "config.json")));
  identity.fixed["the data"] = rows.documents().fingerprint();
  if (!rows.options().parts.empty())
    identity.fixed["what an epoch takes of the data"] = parts_text(rows.options().parts);
  for (const formats::RecipeKey& key : formats::recipe_keys()) {
    if (key.field.get == nullptr || !key.belongs_to(formats::Verb::train)) continue;
    if (key.on_resume == formats::OnResume::ignored || is_idle(recipe, key.name)) continue;
    auto& group = is_fixed(recipe, key) ? identity.fixed : identity.free;
    group[std::string(key.name)] = formats::value_text(key, key.field.get(recipe));
  }
  return identity;
}

void add_weights(runtime::RunIdentity& identity, uint64_t digest) {
  identity.fixed[kWeights] = base::checksum_text(digest);
}

void add_adapter(runtime::RunIdentity& identity, uint64_t digest) {
  identity.fixed[kAdapter] = base::checksum_text(digest);
}

void check_identity(const runtime::RunIdentity& saved, const runtime::RunIdentity& now,
                    const std::string& checkpoint) {
  const runtime::Differences found =
      runtime::differences(part_of(saved, false), part_of(now, false));
  refuse(found.fixed, checkpoint);
  for (const std::string& difference : found.free)
    base::say("resuming with other numbers: {}", difference);
}

void check_read_identity(const runtime::RunIdentity& saved, const runtime::RunIdentity& now,
                         const std::string& checkpoint) {
  refuse(runtime::differences(part_of(saved, true), part_of(now, true)).fixed, checkpoint);
}

}  // namespace snug::train
