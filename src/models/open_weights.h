// A model folder's tensors by the names that its stack of blocks gives them.
#pragma once

#include <filesystem>

#include "formats/tensor_index.h"
#include "models/blocks.h"

namespace snug::models {

// Where no name in the files begins with the stack's optional prefix, all but the head's are listed
// and found with it. A head that begins as the embedding is found there, and an embedding that
// files hold as the head alone, as transformers finds it, there. Throws UserError as TensorIndex
// does.
formats::TensorIndex open_weights(const std::filesystem::path& folder, const Stack& stack);

}  // namespace snug::models
