// per_device_train_batch_size=auto: chooses the rows of a micro-batch so that the step is as fast
// as possible and fits.
//
// A step then has gradient_accumulation_steps rows on each device. The micro-batch divides that
// number, so a step has as many rows as the recipe says, whatever is chosen. A sum over
// micro-batches is rounded differently from a sum over rows, so the last bits of a run depend on
// the choice.
#pragma once

#include <optional>
#include <string>

#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"

namespace snug::plan {

// The recipe with auto replaced by micro-batches of this number of rows, which must divide the rows
// of a step.
formats::Recipe with_rows(const formats::Recipe& recipe, int64_t rows);

// The recipe with the smallest possible micro-batch: the recipe's own if it sets one, all rows of a
// step where weights are updated in the backward pass, else one row.
formats::Recipe with_fewest_rows(const formats::Recipe& recipe);

// Text such as "4 rows in a micro-batch, gradient_accumulation_steps=2".
std::string rows_text(const formats::Recipe& recipe);

struct FittingRows {
  formats::Recipe recipe;  // with auto replaced by numbers
  double step_seconds = 0;
};

// The recipe's number of rows or, with auto, the number with the fastest step; nothing where none
// fits, or the recipe refuses all of them. Throws UserError as assemble_training does.
std::optional<FittingRows> fastest_rows(const TrainingInputs& inputs,
                                        const MeasureProcess& measure = {});

// The recipe with auto replaced by numbers; unchanged if it has numbers. Where nothing fits,
// micro-batches have one row. The other open choices (what layers recompute, memory for copies) are
// made anew for each number of rows. Throws UserError as assemble_training does.
formats::Recipe with_chosen_rows(const TrainingInputs& inputs, const MeasureProcess& measure = {});

}  // namespace snug::plan
