// Which modules an adapter's file holds: what remains of target_modules where adapter_config.json
// narrows them by layers, exclusions or a pattern.
#pragma once

#include "base/json.h"

#include <filesystem>
#include <string>
#include <vector>

namespace snug::formats {

// Whether `config` has "layers_to_transform", "exclude_modules", or a pattern as "target_modules".
bool narrows_targets(const base::JsonObject& config);

// The full names of the modules in FOLDER/adapter_model.safetensors, in the order of the file.
// Throws UserError where there are none, and for one that `config` leaves out: PEFT would not load
// it.
std::vector<std::string> adapter_modules(const std::filesystem::path& folder,
                                         const base::JsonObject& config);

}  // namespace snug::formats
