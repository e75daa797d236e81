// A tokenized document: ids, and which of them are learned. Made from parts (conversation.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/chat/conversation.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

struct Document {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;  // 1 where the token is a target, one for each id
};

// Whether the tokens that the tokenizer's post-processor adds stand around the document (as in
// Tokenizer::encode), only before it, or not at all (a chat template brings its own).
enum class SpecialTokens { none, before, around };

// Tokenizes the parts as the one text they form, so that the ids are those of the whole. A token
// that spans from prompt into answer counts as answer: the prompt's tokens are those that the
// prompt alone would have. Pure; any thread.
Document tokenize_parts(const Tokenizer& tokenizer, std::span<const Part> parts,
                        SpecialTokens special);

}  // namespace snug::text
