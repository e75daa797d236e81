// The tokenizer of a model folder in the form of a GGUF file: which of llama.cpp's tokenizers it
// is, and its tokens with their kinds and scores. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "convert/gguf/gguf_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {

// Whether the folder has the files of one.
bool has_tokenizer(const std::filesystem::path& folder);

// Everything but chat templates. `tokenizer` is that of the folder; there will be `rows` tokens.
// Throws UserError for a tokenizer that llama.cpp has no form for, and says why.
GgufTokenizer gguf_tokenizer(const std::filesystem::path& folder, const text::Tokenizer& tokenizer,
                             int64_t rows);

}  // namespace snug::convert
