// The ids that end a text according to a model folder, without its tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

// One id or a list of ids; ids below 0, which some files write for "none", are dropped. Throws
// UserError for anything else.
std::vector<int32_t> listed_ids(const JsonNode& config, std::string_view key);

// eos_token_id of a file without duplicates; empty if the file does not exist.
std::vector<int32_t> ids_of_file(const std::filesystem::path& path);

// eos_token_id (a number or a list) of generation_config.json or, if that names none, of
// config.json, without duplicates. If an adapter's folder is given, its generation_config.json
// takes precedence. A built-in shape has no folder (an empty path) and no ids. Throws UserError for
// an invalid file.
std::vector<int32_t> folder_stop_ids(const std::filesystem::path& folder,
                                     const std::filesystem::path& adapter = {});

// A note about ids that config.json names but that a file with precedence does not; empty if there
// are none.
std::string ignored_stop_ids(const std::filesystem::path& folder,
                             const std::filesystem::path& adapter = {});

}  // namespace snug::text
