// The ids that end a text, as a model folder says without its tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

// One id or a list of ids; ids below 0, which some files write for "none", are left out. Throws
// UserError for anything else.
std::vector<int32_t> listed_ids(const JsonNode& config, std::string_view key);

// eos_token_id of a file, each id once; none where it is not there.
std::vector<int32_t> ids_of_file(const std::filesystem::path& path);

// eos_token_id, a number or a list, of generation_config.json or, where that names none, of
// config.json, each id once. With an adapter's folder its generation_config.json counts before.
// A built-in shape has no folder (an empty path) and no ids. Throws UserError for a file that is
// not what it should be.
std::vector<int32_t> folder_stop_ids(const std::filesystem::path& folder,
                                     const std::filesystem::path& adapter = {});

// What to tell of ids that a model's config.json names and a file that counts before does not;
// empty where there are none.
std::string ignored_stop_ids(const std::filesystem::path& folder,
                             const std::filesystem::path& adapter = {});

}  // namespace snug::text
