// Translates DeepSpeed's configuration file into keys of a recipe.
#pragma once

#include "formats/foreign/tool_config.h"

namespace snug::formats {

// Reads the JSON file that DeepSpeed takes as ds_config. Throws UserError with the file and the
// path of the key.
ToolConfig read_deepspeed_config(const std::string& path);

}  // namespace snug::formats
