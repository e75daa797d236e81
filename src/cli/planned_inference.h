// Plans the inference job of a recipe, for `snug explain job=inference` and `snug plan mode=serve`.
#pragma once

#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "program/work/target.h"

namespace snug::cli {

// Plans for per_device_train_batch_size parallel sequences of up to max_length tokens; all logits
// of the last tokens are copied to the host. Needs no weights. Throws UserError as
// assemble_inference does, and where max_length is left open or exceeds the model's positions.
plan::PlannedInference planned_inference(const formats::Recipe& recipe, program::Target& target);

// Plans for serving: as many of these sequences run at one time (16 where the recipe does not say),
// and the pools of keys and values take the memory that is left.
plan::PlannedServing planned_serving(const formats::Recipe& recipe, program::Target& target);

}  // namespace snug::cli
