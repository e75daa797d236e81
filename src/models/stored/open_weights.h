// A model folder's tensors by the names that its stack of blocks gives them.
#pragma once

#include <filesystem>

#include "formats/folder/tensor_index.h"
#include "models/blocks.h"

namespace snug::models {

// Where no name in the files begins with the stack's optional prefix, all but the head's are listed
// and found with it. So are the head and the embedding that the files hold under another name
// alone: the name that transformers gives the head, or that of a table which is the embedding's
// too, a tied head among them. A head that begins as the embedding is found there. Throws UserError
// as TensorIndex does.
formats::TensorIndex open_weights(const std::filesystem::path& folder, const Stack& stack);

}  // namespace snug::models
