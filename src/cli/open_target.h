// The machine that a recipe plans for.
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/device/hardware_table.h"
#include "formats/recipe/recipe.h"
#include "program/work/target.h"

namespace snug::cli {

// The GPU that the recipe names as its device, whether or not this machine has it; otherwise the
// recipe's backend with its number of threads and its device budget. Throws UserError.
std::unique_ptr<program::Target> open_target(const formats::Recipe& recipe);

// The table's row for this device. Where the table has none, throws UserError that names the
// recipe's key and the nearest device.
const backends::cuda::HardwareRow& require_row(const std::string& device,
                                               const formats::Recipe& recipe,
                                               const backends::cuda::HardwareTable& table);

}  // namespace snug::cli
