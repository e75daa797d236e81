// The normalizer "Precompiled": SentencePiece's table of replacements, as its trainer compiled it.
// In base64 the bytes of a trie, a double array in units of 32 bits (Aoe, "An efficient digital
// search algorithm by using a double-array structure", 1989; darts-clone's layout), then the
// replacements, each ended by a zero byte, whose offsets the trie holds.
#pragma once

#include <memory>

#include "text/record/json_node.h"
#include "text/tokenizer/steps/normalizer.h"

namespace snug::text {

// Reads "precompiled_charsmap" of `node`; throws UserError where it is damaged.
std::unique_ptr<Normalizer> read_precompiled(const JsonNode& node);

}  // namespace snug::text
