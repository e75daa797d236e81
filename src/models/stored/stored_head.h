// Tables of a model folder that its config.json says are one, and of which its files hold several:
// the head of a model that is tied to the embedding, and the embeddings of an encoder and a
// decoder.
#pragma once

#include <filesystem>

#include "models/config/config.h"

namespace snug::models {

// Whether the files hold a head other than the embedding: it is used then, as transformers 5 does,
// whatever tie_word_embeddings says. Reads both, a piece at a time, as far as they are the same;
// opens no file where the head is not tied, or the folder has no files of tensors.
bool has_head_of_its_own(const std::filesystem::path& folder, const ModelConfig& config);

// Throws UserError where the files hold the embedding's table under another name too, with other
// values: transformers computes with both then. Opens no file where the family has one name for it.
void refuse_other_tables(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace snug::models
