// How wide the elements of weights are in a folder's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "models/config/config.h"

namespace snug::models {

// The weights whose files hold elements of another width than config.file_width, in bytes, by name:
// of one that files hold as several tensors, the width of the widest. Opens the files' headers
// only; empty where the folder has no files. Throws UserError as TensorIndex does.
std::map<std::string, int64_t, std::less<>> other_widths(const std::filesystem::path& folder,
                                                         const ModelConfig& config);

}  // namespace snug::models
