// The ids that end a text, as a model folder says without its tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "text/json_node.h"

namespace snug::text {

// One id or a list of ids; ids below 0, which some files write for "none", are left out. Throws
// UserError for anything else.
std::vector<int32_t> listed_ids(const JsonNode& config, std::string_view key);

// eos_token_id, a number or a list, of generation_config.json or, where that names none, of
// config.json, each id once. Throws UserError for a file that is not what it should be.
std::vector<int32_t> folder_stop_ids(const std::filesystem::path& folder);

}  // namespace snug::text
