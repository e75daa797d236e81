#include "train/run_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "methods/objective.h"
#include "plan/job/rank_grid.h"
#include "plan/spec/rollout_spec.h"

namespace snug::train {

StepRows step_rows(const formats::Recipe& recipe) {
  if (methods::objective_of(recipe.objective).makes_answers) {
    const plan::RolloutSizes sizes = plan::rollout_sizes(recipe, {});
    return {sizes.prompts(), sizes.updates()};
  }
  return {std::max<int64_t>(1, recipe.per_device_train_batch_size) *
          recipe.gradient_accumulation_steps * plan::rank_grid(recipe).ranks()};
}

RunLength run_length(const formats::Recipe& recipe, text::RowSource& rows) {
  if (recipe.max_steps > 0) return {.steps = recipe.max_steps};
  const int64_t most = rows.most_epochs();
  if (!(recipe.num_train_epochs < static_cast<double>(most)))
    recipe.fail("num_train_epochs",
                fmt::format("is {}, but of this data at most {} epochs can be counted; give fewer, "
                            "or max_steps",
                            recipe.num_train_epochs, most - 1));
  const StepRows rows_of = step_rows(recipe);
  const auto whole = static_cast<int64_t>(recipe.num_train_epochs);
  const double part = recipe.num_train_epochs - static_cast<double>(whole);
  const auto begin = static_cast<double>(rows.rows_until(whole));
  const auto end = static_cast<double>(rows.rows_until(whole + (part > 0 ? 1 : 0)));
  const auto end_row =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(begin + part * (end - begin)))) *
      rows_of.uses;
  return length_after({.steps = 0, .end_row = end_row}, 0, 0, rows_of.step);
}

RunLength length_after(const RunLength& length, int64_t steps, int64_t rows, int64_t step_rows) {
  if (length.end_row == std::numeric_limits<int64_t>::max()) return length;
  const int64_t left = std::max<int64_t>(0, length.end_row - rows);
  return {.steps = steps + (left + step_rows - 1) / step_rows, .end_row = length.end_row};
}

}  // namespace snug::train
