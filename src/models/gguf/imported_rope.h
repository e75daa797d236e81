// How positions rotate, from a GGUF file: keys of its metadata, and tensors of divisors of the
// frequencies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf_file.h"
#include "formats/gguf/metadata_view.h"
#include "models/config/config.h"

namespace snug::models {

// Fills rope, local_rope and partial_rotary_factor. Needs the other sizes of `config`. Keys begin
// with `architecture`. Throws UserError for a rotation that the family does not have.
void import_rope(const formats::GgufFile& file, const formats::MetadataView& metadata,
                 const std::string& architecture, ModelConfig& config);

// Llama 3's scaling from its divisors of the frequencies, of which files keep nothing else. The
// three numbers behind them can be multiplied by any number without a change, so low_freq_factor
// is 1 where the original number of positions then is an integer. Nothing where no such scaling has
// these divisors.
std::optional<RopeConfig> llama3_scaling(const std::vector<float>& divisors, double theta);

}  // namespace snug::models
