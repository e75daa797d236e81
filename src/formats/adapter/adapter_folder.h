// What is wrong with what was given as the folder of an adapter: people give whole models, folders
// of runs, single files, and adapters of other tools than PEFT.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace snug::formats {

inline constexpr std::string_view kAdapterConfigName = "adapter_config.json";

// Throws UserError for a folder without that file: what it is, and what to give instead.
[[noreturn]] void refuse_adapter_folder(const std::filesystem::path& folder);

// Throws UserError unless peft_type is a kind of adapter that Snug reads: whose it is, or what.
void check_adapter_type(const base::JsonObject& config);

// Files of weights in an adapter's folder that are no part of it as PEFT loads it, by their names:
// projectors, tables and heads that other tools train next to it. The state of an optimizer is
// none.
std::vector<std::string> other_weights(const std::filesystem::path& folder);

}  // namespace snug::formats
