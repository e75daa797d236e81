// Lists of data sets in recipes of axolotl (datasets, test_datasets, pretraining_dataset) and of
// TRL (datasets), whose entries become those of a recipe's data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign/tool_config.h"
#include "formats/foreign/tool_entries.h"
#include "formats/recipe/data_entry.h"

namespace snug::formats {

struct ToolDatasets {
  std::vector<DataEntry> entries;
  // Notes and mistakes, and keys of the recipe that the entries say, such as chat_template.
  ToolConfig said;
};

// `file`: the recipe, for notes. `rl`: the recipe's key of this name, or empty.
ToolDatasets read_dataset_list(const std::vector<ToolEntry>& list, const std::string& file,
                               std::string_view rl);

}  // namespace snug::formats
