// Handles model folders whose config.json says that tables are shared while the files hold several
// of them: the head of a model with tied embeddings, and the embeddings of an encoder and a
// decoder.
#pragma once

#include <filesystem>

#include "models/config/config.h"

namespace snug::models {

// Whether the files hold a head that differs from the embedding. It is then used whatever
// tie_word_embeddings says, as in transformers 5. Compares the two piece by piece up to the first
// difference; opens no file where the head is not tied or the folder has no tensor files.
bool has_head_of_its_own(const std::filesystem::path& folder, const ModelConfig& config);

// Throws UserError where the files also hold the embedding's table under another name, with other
// values: transformers would then use both. Opens no file if the family has a single name for it.
void refuse_other_tables(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace snug::models
