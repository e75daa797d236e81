// Which modules an adapter's file holds: what remains of target_modules where adapter_config.json
// restricts them by layers, exclusions or a pattern.
#pragma once

#include "base/json.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// The word that selects every linear of every layer.
inline constexpr std::string_view kAllLinear = "all-linear";

// Whether "target_modules" is that word, in upper or lower case.
bool targets_all_linear(const base::JsonObject& config);

// Whether `config` has "layers_to_transform", "exclude_modules", or a pattern as "target_modules"
// (any text other than kAllLinear).
bool narrows_targets(const base::JsonObject& config);

// Whether the config ties the adapters of a head that is the embedding (ensure_weight_tying): PEFT
// does so where target_modules selects one of the two by the name embed_tokens or lm_head, and
// modules_to_save none of them.
bool ties_adapters(const base::JsonObject& config);

// The full names of the modules in FOLDER/adapter_model.safetensors, in the order of the file, but
// for those of experts, which target_parameters selects. Throws UserError where there are none, for
// a module that `config` excludes and that PEFT would therefore not load, and for a malformed
// pattern.
std::vector<std::string> adapter_modules(const std::filesystem::path& folder,
                                         const base::JsonObject& config);

// The linears of a model (by names without wrappers) that such a config selects but that the file
// does not hold; PEFT would apply the adapter without them. Empty where the config only has names,
// which are compared with the model's own.
std::vector<std::string> missing_modules(const std::filesystem::path& folder,
                                         const std::vector<std::string>& linears);

}  // namespace snug::formats
