// The machine that a recipe plans for.
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/device/hardware_table.h"
#include "formats/recipe/recipe.h"
#include "program/work/target.h"

namespace snug::cli {

// The card that the recipe names as its device, whether it is here or not; else its backend with
// its threads and its device budget. Throws UserError.
std::unique_ptr<program::Target> open_target(const formats::Recipe& recipe);

// The row of this device. Throws UserError as one of the recipe's key, naming the nearest, where
// the table has none.
const backends::cuda::HardwareRow& require_row(const std::string& device,
                                               const formats::Recipe& recipe,
                                               const backends::cuda::HardwareTable& table);

}  // namespace snug::cli
