// Embedding and head tables that PEFT saved next to an adapter that training continues from. They
// are not trained, and saving leaves them out, so they must equal the model's own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/config/config.h"

namespace snug::runtime {

// The weights that the adapter's files hold although modules_to_save does not name them; each must
// have the values of the model's files, except for rounding to 16 bits. Reads both. Throws
// UserError where values differ. Empty for adapters other than LoRA, and for models without files.
std::vector<std::string> unchanged_tables(const std::filesystem::path& adapter,
                                          const models::ModelSource& model);

}  // namespace snug::runtime
