// The tokenizer.json that gives the ids that llama.cpp gives for the tokenizer of a GGUF file. Pure
// functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "convert/gguf/gguf_tokenizer.h"

namespace snug::convert {

// `composes`: with the composition of characters (NFC) that models with this pre-tokenizer were
// trained with, although llama.cpp leaves it out. Throws UserError for a pre-tokenizer that is not
// known here, and for tokens that do not fit together.
nlohmann::json tokenizer_document(const GgufTokenizer& tokenizer, bool composes);

// What llama.cpp puts around a text.
bool adds_bos(const GgufTokenizer& tokenizer);
bool adds_eos(const GgufTokenizer& tokenizer);

}  // namespace snug::convert
