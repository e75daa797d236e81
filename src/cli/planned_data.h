// The training job of a recipe, planned: what `snug plan` and `snug explain` tell of.
#pragma once

#include <memory>
#include <optional>

#include "cli/request.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "train/data.h"

namespace snug::cli {

// Whether per_device_train_batch_size=auto becomes numbers, or is left to whoever plans with each.
// max_length=auto is the longest document's length then.
enum class AutoRows : uint8_t { choose, leave };

// What a plan is made of. Does not move: plans refer to it.
class PlanningSession {
 public:
  // Reads the recipe and what it names. A plan may be made before its data is: there are none then,
  // which is said on stderr where a file is not there or nothing tokenizes it. Throws UserError,
  // also for data that is broken.
  explicit PlanningSession(const Request& request, AutoRows rows = AutoRows::choose);
  PlanningSession(const PlanningSession&) = delete;
  PlanningSession& operator=(const PlanningSession&) = delete;

  const formats::Recipe& recipe() const { return recipe_; }
  program::Target& target() const { return *target_; }
  plan::TrainingInputs inputs() const;
  // The tokens that the job trains on, rows taken to be full; nothing without data, or where
  // max_steps ends it.
  std::optional<double> job_tokens() const;

 private:
  void settle_length(AutoRows rows, const plan::MeasureProcess& measure);

  models::ModelSource model_;
  formats::Recipe recipe_;
  std::unique_ptr<program::Target> target_;
  std::optional<train::RunData> data_;
};

}  // namespace snug::cli
