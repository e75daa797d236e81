#include "cli/planned_data.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/console.h"
#include "cli/open_target.h"
#include "formats/data/data_files.h"
#include "plan/choice/choose_length.h"
#include "plan/choice/choose_rows.h"
#include "plan/job/rank_grid.h"
#include "plan/spec/objective_spec.h"
#include "plan/spec/resolve.h"
#include "runtime/execution/rehearsal.h"
#include "runtime/process/process_memory.h"
#include "train/run_length.h"

namespace snug::cli {
namespace {

// Keys that name files without which a plan can still be made.
constexpr std::array<std::string_view, 3> kPlannedWithout{"data", "eval_data",
                                                          "resume_from_checkpoint"};

formats::Recipe read_recipe(const Request& request) {
  formats::Recipe recipe = request.recipe(kPlannedWithout);
  recipe.require("model");
  return recipe;
}

std::optional<train::RunData> read_data(const formats::Recipe& recipe,
                                        const models::ModelSource& model,
                                        const program::Target& target) {
  // Mistakes in the recipe are reported before mistakes in the data.
  plan::training_spec(plan::with_open_length(recipe, model.config), model.config, target);
  if (recipe.data.empty()) return std::nullopt;
  const auto without = [](const std::string& path, const char* reason) {
    base::say("planned without the tokens of data {}: {}", path, reason);
    return std::nullopt;
  };
  for (const auto* entries : {&recipe.data, &recipe.eval_data})
    for (const formats::DataEntry& entry : *entries)
      if (!formats::is_data_there(entry.path) && !formats::is_data_in_hub_cache(entry.path))
        return without(entry.path, "the file is not there");
  if (!train::has_tokenizer_for(recipe, model))
    return without(recipe.data.front().path, "a built-in shape has no tokenizer");
  train::RunData data = train::load_data(recipe, model, target);
  // As in the run, which it is a part of the memory of.
  if (recipe.eval_generate == 0 && data.prompts.empty()) data.tokenizer.reset();
  runtime::release_freed_memory();
  return data;
}

}  // namespace

PlanningSession::PlanningSession(const Request& request, AutoRows rows)
    : recipe_(read_recipe(request)) {
  model_ = models::find_model(recipe_.model);
  recipe_ = plan::resolve(std::move(recipe_), model_.config);
  plan::check_step_rows(recipe_);
  target_ = open_target(recipe_);
  data_ = read_data(recipe_, model_, *target_);
  const auto measure = [&](const plan::Job& job) { return runtime::rehearse(job, *target_); };
  if (recipe_.max_length == 0) settle_length(rows, measure);
  if (recipe_.per_device_train_batch_size > 0 || rows == AutoRows::leave) return;
  recipe_ = plan::with_chosen_rows(inputs(), measure);
  base::say("per_device_train_batch_size=auto: {}", plan::rows_text(recipe_));
}

// Choosing max_length by the longest document alone would ignore memory, so an open length is
// refused without data.
void PlanningSession::settle_length(AutoRows rows, const plan::MeasureProcess& measure) {
  if (!data_) plan::refuse_open_length(recipe_);
  const plan::TrainingInputs open{.recipe = recipe_, .model = model_, .target = *target_};
  const int64_t times = rows == AutoRows::choose ? train::best_times(open, *data_, measure) : 1;
  recipe_ = train::with_length_of_data(open, *data_, times);
}

plan::TrainingInputs PlanningSession::inputs() const {
  return {.recipe = recipe_,
          .model = model_,
          .target = *target_,
          .data = data_ ? std::optional(data_->facts()) : std::nullopt};
}

std::optional<double> PlanningSession::job_tokens() const {
  if (!data_ || recipe_.max_steps > 0 || !data_->prompts.empty()) return std::nullopt;
  const train::RunLength length = train::run_length(recipe_, data_->training->rows);
  return static_cast<double>(length.end_row) *
         static_cast<double>(plan::row_tokens(recipe_, model_.config.has_encoder()).sum());
}

}  // namespace snug::cli
