// The planned training job of a recipe, which `snug plan` and `snug explain` report.
#pragma once

#include <memory>
#include <optional>

#include "cli/request.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "train/data.h"

namespace snug::cli {

// Whether per_device_train_batch_size=auto is resolved here, or left to a caller that plans with
// each candidate. If it is left, max_length=auto means the longest document's length.
enum class AutoRows : uint8_t { choose, leave };

// Everything that a plan is made from. It cannot be moved, since plans hold references to it.
class PlanningSession {
 public:
  // Reads the recipe and what it names. A plan can be made before its data exists: where a file is
  // missing or no tokenizer is found, the plan is made without data and a note is printed to
  // stderr. Throws UserError, also for broken data.
  explicit PlanningSession(const Request& request, AutoRows rows = AutoRows::choose);
  PlanningSession(const PlanningSession&) = delete;
  PlanningSession& operator=(const PlanningSession&) = delete;

  const formats::Recipe& recipe() const { return recipe_; }
  program::Target& target() const { return *target_; }
  plan::TrainingInputs inputs() const;
  // The number of tokens that the job trains on, with rows counted as full; nothing without data,
  // or where max_steps ends the job.
  std::optional<double> job_tokens() const;

 private:
  void settle_length(AutoRows rows, const plan::MeasureProcess& measure);

  models::ModelSource model_;
  formats::Recipe recipe_;
  std::unique_ptr<program::Target> target_;
  std::optional<train::RunData> data_;
};

}  // namespace snug::cli
