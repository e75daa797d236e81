// What a folder's files store in 4 bits. The files say it, tensor by tensor; config.json only
// announces it, and where it says something else nothing is loaded.
#pragma once

#include <filesystem>
#include <optional>

#include "models/config/config.h"

namespace snug::models {

// How FOLDER's files store the linears of `config`, whose `stored` is what config.json announces;
// nothing: in 16 or 32 bits. Reads headers and the JSON of each quantised linear. A folder whose
// files are not announced as quantised and not all there counts as unquantised: it can be planned.
// Throws UserError naming file and tensor for quantised files that config.json does not announce,
// or announces as double quantised when they are not, or the reverse; for linears that differ in
// that; and for anything in 4 bits but linears of layers and a head that is not tied.
std::optional<StoredNf4> stored_nf4(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace snug::models
