// Finds out what is wrong with a path that was given as an adapter's folder: people give whole
// models, folders of runs, single files, and adapters of tools other than PEFT.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace snug::formats {

inline constexpr std::string_view kAdapterConfigName = "adapter_config.json";

// Throws UserError for a folder without adapter_config.json: says what the folder is, and what to
// give instead.
[[noreturn]] void refuse_adapter_folder(const std::filesystem::path& folder);

// The adapter inside a run's folder, the final one or else that of the last checkpoint; empty where
// there is none.
std::filesystem::path adapter_within(const std::filesystem::path& folder);

// Throws UserError unless Snug reads adapters of this peft_type: says which tool or method it
// belongs to.
void check_adapter_type(const base::JsonObject& config);

// Files of weights in an adapter's folder that are no part of it as PEFT loads it, by their names:
// projectors, tables and heads that other tools train next to it. The state of an optimizer is
// none.
std::vector<std::string> other_weights(const std::filesystem::path& folder);

}  // namespace snug::formats
