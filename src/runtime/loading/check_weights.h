// Checks whether the files of a folder hold the model that its config.json describes. Reads only
// headers, so that a mistake is found before memory is allocated.
#pragma once

#include "formats/folder/tensor_index.h"
#include "models/config/config.h"

namespace snug::runtime {

// Throws UserError for a weight that is missing, surplus, or has another shape than the config
// says, whether it is stored in 16 or 32 bits or as NF4.
void check_weights(const formats::TensorIndex& index, const models::ModelConfig& config);

}  // namespace snug::runtime
