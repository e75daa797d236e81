// The head of a model folder whose config.json ties it to the embedding, and whose files hold both.
#pragma once

#include <filesystem>

#include "models/config.h"

namespace snug::models {

// Whether the files hold a head other than the embedding: it is used then, as transformers 5 does,
// whatever tie_word_embeddings says. Reads both, a piece at a time, as far as they are the same;
// opens no file where the head is not tied, or the folder has no files of tensors.
bool has_head_of_its_own(const std::filesystem::path& folder, const ModelConfig& config);

}  // namespace snug::models
