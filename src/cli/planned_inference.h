// Plans the inference job of a recipe, for `snug explain job=inference` and `snug plan mode=serve`.
#pragma once

#include <optional>

#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "program/ir/program_name.h"
#include "program/work/target.h"

namespace snug::cli {

// Plans for per_device_train_batch_size parallel sequences of up to max_length tokens; all logits
// of the last tokens are copied to the host. The job has its largest programs alone, and one of the
// size that `program` names. Needs no weights. Throws UserError as assemble_inference does, and
// where max_length is left open or exceeds the model's positions.
plan::PlannedInference planned_inference(const formats::Recipe& recipe, program::Target& target,
                                         const std::optional<program::ProgramKey>& program = {});

// Plans for serving: as many of these sequences run at one time (16 where the recipe does not say),
// and the pools of keys and values take the memory that is left.
plan::PlannedServing planned_serving(const formats::Recipe& recipe, program::Target& target);

}  // namespace snug::cli
