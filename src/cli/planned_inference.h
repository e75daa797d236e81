// Plans the inference job of a recipe, for `snug explain job=inference`.
#pragma once

#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "program/work/target.h"

namespace snug::cli {

// Plans for per_device_train_batch_size parallel sequences of up to max_length tokens; all logits
// of the last tokens are copied to the host. Needs no weights. Throws UserError as
// assemble_inference does, and where max_length is left open or exceeds the model's positions.
plan::PlannedInference planned_inference(const formats::Recipe& recipe, program::Target& target);

}  // namespace snug::cli
