// Whether the files of a folder hold the model that its config.json describes. Looks at their
// headers only, so that a mistake shows before memory is taken for it.
#pragma once

#include "formats/folder/tensor_index.h"
#include "models/config/config.h"

namespace snug::runtime {

// Throws UserError for a weight that is missing, surplus, or of another shape than the config's,
// whether in 16 or 32 bits or as NF4.
void check_weights(const formats::TensorIndex& index, const models::ModelConfig& config);

}  // namespace snug::runtime
