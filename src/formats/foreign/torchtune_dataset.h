// torchtune's data sets: a builder (_component_), and what it is given.
#pragma once

#include <string>
#include <vector>

#include "formats/foreign/dataset_list.h"
#include "formats/foreign/tool_entries.h"

namespace snug::formats {

// Whether an entry is of torchtune.
bool is_torchtune(const ToolEntry& entry);

// `is_evaluation`: keys of the recipe that it says do not count.
ToolDatasets read_torchtune_list(const std::vector<ToolEntry>& list, const std::string& file,
                                 bool is_evaluation);

}  // namespace snug::formats
