// Which modules an adapter's file holds: what remains of target_modules where adapter_config.json
// narrows them by layers, exclusions or a pattern.
#pragma once

#include "base/json.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// What stands for every linear of every layer in place of names.
inline constexpr std::string_view kAllLinear = "all-linear";

// Whether "target_modules" is that text, in any case.
bool targets_all_linear(const base::JsonObject& config);

// Whether `config` has "layers_to_transform", "exclude_modules", or a pattern as "target_modules",
// which any other text is.
bool narrows_targets(const base::JsonObject& config);

// Whether the config ties the adapters of a head that is the embedding (ensure_weight_tying): PEFT
// does so where target_modules selects one of the two by the name embed_tokens or lm_head, and
// modules_to_save none of them.
bool ties_adapters(const base::JsonObject& config);

// The full names of the modules in FOLDER/adapter_model.safetensors, in the order of the file.
// Throws UserError where there are none, for one that `config` leaves out, which PEFT would not
// load, and for a pattern that cannot be read.
std::vector<std::string> adapter_modules(const std::filesystem::path& folder,
                                         const base::JsonObject& config);

// Of the linears of a model, by their names without wrappers, those that such a config selects and
// the file does not hold: PEFT would apply the rest. None where the config only has names, which
// are compared with the model's own.
std::vector<std::string> missing_modules(const std::filesystem::path& folder,
                                         const std::vector<std::string>& linears);

}  // namespace snug::formats
