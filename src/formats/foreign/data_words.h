// What recipes of other tools say of their data: lists of data sets, names of a dataset_info.json
// or of the hub with configuration and split, counts and mixes. All become a recipe's data and
// eval_data, and keys next to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign/tool_config.h"

namespace snug::formats {

// Whether a key is kept as a list of maps (tool_entries.h), and not taken apart key by key.
bool holds_data_sets(std::string_view name);

// Takes such keys out of `all`, and returns what they say: keys of a recipe, and keys of other
// tools that a recipe has once for all data. `others` are the keys of the recipe's file, where
// `all` are those of the command line.
ToolConfig take_data_words(std::vector<Written>& all, const std::vector<Written>& others,
                           const std::string& file);

}  // namespace snug::formats
