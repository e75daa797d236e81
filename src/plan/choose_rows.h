// per_device_train_batch_size=auto: rows of a micro-batch, with which the fastest step fits.
//
// A step of a device has gradient_accumulation_steps rows then, in micro-batches of a number that
// divides them, so that the rows of a step are what the recipe says, whatever is chosen. The sum
// over micro-batches is rounded otherwise than one over rows: the last bits of a run depend on it.
#pragma once

#include <string>

#include "formats/recipe.h"
#include "plan/assembly.h"

namespace snug::plan {

// Of a recipe that says auto: micro-batches of so many rows, which divide those of a step.
formats::Recipe with_rows(const formats::Recipe& recipe, int64_t rows);

// "4 rows in a micro-batch, gradient_accumulation_steps=2".
std::string rows_text(const formats::Recipe& recipe);

// The recipe with numbers in place of auto; as it is where it has numbers. Where nothing fits,
// single rows. What is chosen next to the rows (what layers compute again, memory for copies) is
// chosen for each number of rows. Throws UserError as assemble_training does.
formats::Recipe with_chosen_rows(const TrainingInputs& inputs, const MeasureProcess& measure = {});

}  // namespace snug::plan
