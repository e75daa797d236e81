#include "plan/spec/unused_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/recipe/method_keys.h"
#include "formats/recipe/optimizer_keys.h"
#include "formats/recipe/recipe_keys.h"
#include "formats/recipe/schedule_keys.h"
#include "methods/objective.h"

namespace snug::plan {
namespace {

using formats::Recipe;

// Keys that were set in a file have a line number; those from the command line have none.
bool is_in_file(const Recipe& recipe, std::string_view key) {
  const auto found = recipe.given.find(key);
  return found != recipe.given.end() && found->second.line > 0;
}

// Whether the method was set on the command line, which takes precedence over the file.
bool overrides_method(const Recipe& recipe) {
  return recipe.is_given("method") && !is_in_file(recipe, "method");
}

bool has_default(const Recipe& recipe, std::string_view name) {
  if (name == "lora_alpha") return recipe.lora_alpha == 2.0 * static_cast<double>(recipe.lora_r);
  const formats::RecipeKey& key = *formats::find_recipe_key(name);
  return formats::value_text(key, key.field.get(recipe)) == key.default_text;
}

void refuse_adapter(const Recipe& recipe) {
  if (recipe.adapter.empty() || !formats::method_keys_of(recipe.method).trains_weights) return;
  recipe.fail("adapter",
              fmt::format("is {}, but method={} trains every weight and no adapter; use "
                          "method=lora or qlora, or merge the adapter into its model with snug "
                          "merge and train that",
                          recipe.adapter, base::word_of(recipe.method)));
}

void refuse_keys_of_other_methods(const Recipe& recipe) {
  base::Mistakes mistakes;
  for (const formats::MethodKeyGroup& group : formats::method_key_groups())
    for (const std::string_view key : group.keys) {
      if (!formats::is_idle_key(recipe.method, key)) continue;
      if (!recipe.is_given(key) || has_default(recipe, key)) continue;
      if (overrides_method(recipe) && is_in_file(recipe, key)) continue;
      mistakes.gather([&, name = key] {
        recipe.fail(name, fmt::format(fmt::runtime(group.refusal), base::word_of(recipe.method)));
      });
    }
  mistakes.throw_if_any();
}

// If the optimizer was chosen on the command line, the file's keys for another optimizer are
// ignored.
void refuse_keys_of_other_optimizers(const Recipe& recipe) {
  const bool is_overridden = recipe.is_given("optim") && !is_in_file(recipe, "optim");
  base::Mistakes mistakes;
  for (const auto& [key, where] : recipe.given) {
    if (!formats::is_optimizer_key(key) || formats::find_optimizer_key(recipe.optim, key)) continue;
    if (has_default(recipe, key) || (is_overridden && is_in_file(recipe, key))) continue;
    std::vector<std::string_view> own;
    for (const formats::OptimizerKey& each : formats::optimizer_keys_of(recipe.optim).keys)
      own.push_back(each.name);
    mistakes.gather([&, name = std::string_view(key)] {
      recipe.fail(name, fmt::format("is not read by optim={}, which has {}; leave it out",
                                    base::word_of(recipe.optim), fmt::join(own, ", ")));
    });
  }
  mistakes.throw_if_any();
}

// If the schedule was chosen on the command line, the file's keys for another schedule are ignored.
// Reading the recipe already reports the warm-up keys that a constant schedule ignores.
void refuse_keys_of_other_schedules(const Recipe& recipe) {
  const bool is_overridden =
      recipe.is_given("lr_scheduler_type") && !is_in_file(recipe, "lr_scheduler_type");
  const auto& own = formats::schedule_keys_of(recipe.lr_scheduler_type).keys;
  base::Mistakes mistakes;
  for (const auto& [key, where] : recipe.given) {
    if (!formats::is_schedule_key(key) || std::ranges::find(own, key) != own.end()) continue;
    if (has_default(recipe, key) || (is_overridden && is_in_file(recipe, key))) continue;
    if (recipe.lr_scheduler_type == formats::Schedule::constant && key.starts_with("warmup_") &&
        key != "warmup_type")
      continue;
    mistakes.gather([&, name = std::string_view(key)] {
      recipe.fail(name, fmt::format("is not read by lr_scheduler_type={}, but by {}; leave it out, "
                                    "or choose one of those",
                                    base::word_of(recipe.lr_scheduler_type),
                                    fmt::join(formats::schedules_with(name), ", ")));
    });
  }
  mistakes.throw_if_any();
}

// These keys are only refused on the command line: files of other tools may list all of them.
void refuse_loss_scale_keys(const Recipe& recipe) {
  if (recipe.compute_dtype == formats::ComputeDtype::fp16) return;
  for (const char* key :
       {"loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale"}) {
    const auto found = recipe.given.find(key);
    if (found != recipe.given.end() && found->second.file == formats::kCommandLine &&
        !has_default(recipe, key))
      recipe.fail(key, "scales losses, which is for compute_dtype=fp16; leave it out");
  }
}

constexpr const char* kSamplingKeys[]{"temperature", "top_k", "top_p", "min_p",
                                      "repetition_penalty"};

void refuse_sampling_keys(const Recipe& recipe) {
  if (methods::objective_of(recipe.objective).makes_answers) return;
  for (const char* key : kSamplingKeys)
    if (recipe.is_given(key) && !is_in_file(recipe, key) && !has_default(recipe, key))
      recipe.fail(key,
                  "is about sampled answers, which training makes with objective=grpo alone; leave "
                  "it out");
}

void refuse_offloading_keys(const Recipe& recipe) {
  if (recipe.offload_params || recipe.offload_optimizer != formats::OffloadOptimizer::none) return;
  for (const char* key : {"offload_threshold", "offload_window"})
    if (recipe.is_given(key) && !has_default(recipe, key))
      recipe.fail(key,
                  "says how weights or optimizer state are offloaded, and nothing is; set "
                  "offload_params=true or offload_optimizer=auto too, or leave it out");
}

void refuse_segments(const Recipe& recipe) {
  if (!recipe.packing && recipe.max_segments > 1)
    recipe.fail(
        "max_segments",
        fmt::format("is {}, but packing=false puts one document in a row; leave one of them "
                    "out",
                    recipe.max_segments));
}

}  // namespace

std::vector<std::string> unread_sampling_keys(const Recipe& recipe) {
  std::vector<std::string> notes;
  if (methods::objective_of(recipe.objective).makes_answers) return notes;
  for (const char* key : kSamplingKeys)
    if (is_in_file(recipe, key) && !has_default(recipe, key))
      notes.push_back(
          fmt::format("{}'{}': not used in training, where only objective=grpo samples "
                      "answers",
                      base::to_string(recipe.given.find(key)->second), key));
  return notes;
}

void refuse_unused_keys(const Recipe& recipe) {
  base::Mistakes mistakes;
  for (const auto refuse :
       {refuse_adapter, refuse_keys_of_other_methods, refuse_keys_of_other_optimizers,
        refuse_keys_of_other_schedules, refuse_loss_scale_keys, refuse_sampling_keys,
        refuse_offloading_keys, refuse_segments})
    mistakes.gather([&] { refuse(recipe); });
  mistakes.throw_if_any();
}

}  // namespace snug::plan
