// The tokenizer and the chat templates of a model folder as metadata of a GGUF file. Pure
// functions, any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/gguf/metadata.h"

namespace snug::convert {

// Sets the keys tokenizer.*, as llama.cpp's converter writes them for the same folder, with
// `vocab_size` tokens: the rows of the embedding. Returns notes: what llama.cpp does in another way
// than the folder's tokenizer, in one sentence each. Throws UserError for a tokenizer that
// llama.cpp has no form for, and where it would read ordinary text as other tokens.
std::vector<std::string> add_tokenizer(const std::filesystem::path& folder, int64_t vocab_size,
                                       formats::Metadata& metadata);

}  // namespace snug::convert
