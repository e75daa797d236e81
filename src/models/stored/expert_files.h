// How a folder's files hold the matrices of experts: each in a tensor of its own, as transformers
// writes them, or all of a layer in one, as some publishers do. config.json does not say it.
#pragma once

#include <filesystem>

#include "models/config/config.h"

namespace snug::models {

// Sets config.experts_in_one by the names of the folder's tensors, which may be those of a text
// model within another one. Leaves the config as it is where the folder holds neither, and where it
// has no files. Throws UserError as TensorIndex does.
void settle_expert_files(const std::filesystem::path& folder, ModelConfig& config);

}  // namespace snug::models
