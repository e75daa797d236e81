// per_device_train_batch_size=auto: rows of a micro-batch, with which the fastest step fits.
//
// A step of a device has gradient_accumulation_steps rows then, in micro-batches of a number that
// divides them, so that the rows of a step are what the recipe says, whatever is chosen. The sum
// over micro-batches is rounded otherwise than one over rows: the last bits of a run depend on it.
#pragma once

#include <optional>
#include <string>

#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"

namespace snug::plan {

// The recipe, which says auto, with micro-batches of so many rows, which divide those of a step.
formats::Recipe with_rows(const formats::Recipe& recipe, int64_t rows);

// The fewest that a micro-batch may have: those of the recipe where it says them, all of a step
// where weights are updated in the backward pass, else single ones.
formats::Recipe with_fewest_rows(const formats::Recipe& recipe);

// "4 rows in a micro-batch, gradient_accumulation_steps=2".
std::string rows_text(const formats::Recipe& recipe);

struct FittingRows {
  formats::Recipe recipe;  // with numbers in place of auto
  double step_seconds = 0;
};

// The rows of the recipe, or of auto those of the fastest step; nothing where none fits, or the
// recipe refuses them all. Throws UserError as assemble_training does.
std::optional<FittingRows> fastest_rows(const TrainingInputs& inputs,
                                        const MeasureProcess& measure = {});

// The recipe with numbers in place of auto; as it is where it has numbers. Where nothing fits,
// single rows. What is chosen next to the rows (what layers compute again, memory for copies) is
// chosen for each number of rows. Throws UserError as assemble_training does.
formats::Recipe with_chosen_rows(const TrainingInputs& inputs, const MeasureProcess& measure = {});

}  // namespace snug::plan
