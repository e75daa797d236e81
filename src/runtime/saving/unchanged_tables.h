// Tables of embedding and head that PEFT saved next to an adapter that training goes on with. They
// are not trained, and what is saved again is without them, so they must be the model's own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/config/config.h"

namespace snug::runtime {

// The weights that the adapter's files hold and modules_to_save does not name, each with the values
// of the model's files, except for rounding to 16 bits. Reads both. Throws UserError for one with
// other values. None for adapters that are no LoRA, and models without files.
std::vector<std::string> unchanged_tables(const std::filesystem::path& adapter,
                                          const models::ModelSource& model);

}  // namespace snug::runtime
