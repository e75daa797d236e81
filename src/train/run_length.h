// How many steps a run has, and where its data end.
#pragma once

#include <cstdint>
#include <limits>

#include "formats/recipe/recipe.h"
#include "text/row/row_source.h"

namespace snug::train {

// The rows of the run that a step takes, and how many of them each row of the data is: several
// where several updates learn from the answers to one prompt (rewards/answer_steps.h).
struct StepRows {
  int64_t step = 1;
  int64_t uses = 1;
};
StepRows step_rows(const formats::Recipe& recipe);

// max_steps, else what num_train_epochs amounts to.
struct RunLength {
  int64_t steps = 0;
  // The last step takes no rows from here on; without num_train_epochs there is no such row.
  int64_t end_row = std::numeric_limits<int64_t>::max();
};
// Throws UserError for more epochs than can be counted (RowSource::most_epochs).
RunLength run_length(const formats::Recipe& recipe, text::RowSource& rows);
// The length of a run that goes on after `steps`, which took `rows`: steps of `step_rows` from
// there on. Steps before may have been of another size.
RunLength length_after(const RunLength& length, int64_t steps, int64_t rows, int64_t step_rows);

}  // namespace snug::train
