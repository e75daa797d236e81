// The inference job of a recipe, planned: what `snug explain job=inference` tells of.
#pragma once

#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "program/work/target.h"

namespace snug::cli {

// Sequences reach max_length tokens, and per_device_train_batch_size of them stand side by side;
// all logits of the last tokens go to the host. Needs no weights. Throws UserError as
// assemble_inference does, and for a length that is open or beyond the model's positions.
plan::PlannedInference planned_inference(const formats::Recipe& recipe, program::Target& target);

}  // namespace snug::cli
