// Opens a model folder's tensors under the names that its stack of blocks uses.
#pragma once

#include <filesystem>

#include "formats/folder/tensor_index.h"
#include "models/blocks.h"

namespace snug::models {

// Names of a text model that lies within another one are listed without the module that holds it.
// If no name in the files begins with the stack's optional prefix, all tensors except the head's
// are listed with the prefix added. If files hold the head or the embedding only under another
// name, it is listed under its own: other names are the one that transformers gives the head, and
// those of tables that equal the embedding, such as a tied head. A head that begins as the
// embedding is found under the embedding's name. Throws UserError as TensorIndex does.
formats::TensorIndex open_weights(const std::filesystem::path& folder, const Stack& stack);

}  // namespace snug::models
