// The data that a plan is made with.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "formats/recipe.h"
#include "models/config.h"
#include "plan/spec.h"
#include "train/data.h"

namespace snug::cli {

// Keys of what a plan can be made without.
inline constexpr std::array<std::string_view, 3> kPlannedWithout{"data", "eval_data",
                                                                 "resume_from_checkpoint"};

// A plan may be made before its data is: nothing without data, and, said on stderr, where a file is
// not there or nothing tokenizes it. The spec's rows become those of what was read. Throws
// UserError for data that is broken.
std::optional<train::RunData> read_planned_data(const formats::Recipe& recipe,
                                                const models::ModelSource& model,
                                                plan::TrainingSpec& spec);

}  // namespace snug::cli
