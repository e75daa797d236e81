// Finds which tensors a folder stores in 4 bits. The files themselves determine that, tensor by
// tensor; config.json only announces it, and nothing is loaded where it contradicts the files.
#pragma once

#include <filesystem>
#include <optional>

#include "models/config/config.h"

namespace snug::models {

// How the folder's files store the linears of `config`, whose `stored` is what config.json
// announces; nothing: in 16 or 32 bits. Reads headers and the JSON of each quantised linear. If
// config.json does not announce quantised files and some files are missing, the folder counts as
// unquantised, so that it can be planned. Throws UserError naming file and tensor for quantised
// files that config.json does not announce; where it announces double quantisation that the files
// do not have, or the reverse; where linears differ in that; and for anything in 4 bits other than
// linears of layers and a head that is not tied.
std::optional<StoredNf4> stored_nf4(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace snug::models
