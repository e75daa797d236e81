// Translates accelerate's configuration file, which may contain FSDP or DeepSpeed settings, into
// keys of a recipe.
#pragma once

#include "formats/foreign/tool_config.h"

namespace snug::formats {

// Reads the YAML file that `accelerate config` writes. Throws UserError with the file and the path
// of the key.
ToolConfig read_accelerate_config(const std::string& path);

}  // namespace snug::formats
