// report_to: what else is told of a run. Of the names that other tools take, Snug obeys some, and
// says of the others what to use instead.
#pragma once

#include "formats/recipe/recipe.h"

namespace snug::formats {

inline constexpr std::string_view kNoReport = "none";
inline constexpr std::string_view kTensorBoard = "tensorboard";

bool reports_to_tensorboard(const Recipe& recipe);

// Leaves in report_to what is obeyed, and adds one note about the services that other tools report
// to. Throws UserError for any other name, with the one that was meant where that is clear.
void settle_report_to(Recipe& recipe);

}  // namespace snug::formats
