// The widths of weights' elements in a folder's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "models/config/config.h"

namespace snug::models {

// The element widths in bytes, by name, of the weights whose files have another width than
// config.file_width. For a weight that files hold as several tensors, it is that of the widest.
// Opens only the files' headers; empty where the folder has no files. Throws UserError as
// TensorIndex does.
std::map<std::string, int64_t, std::less<>> other_widths(const std::filesystem::path& folder,
                                                         const ModelConfig& config);

}  // namespace snug::models
