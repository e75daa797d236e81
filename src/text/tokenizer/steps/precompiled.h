// The normalizer "Precompiled": SentencePiece's table of replacements in its compiled form. In
// base64, it contains the bytes of a trie, a double array in units of 32 bits (Aoe, "An efficient
// digital search algorithm by using a double-array structure", 1989; darts-clone's layout),
// followed by the replacements, each ending in a zero byte; the trie holds their offsets.
#pragma once

#include <memory>

#include "text/record/json_node.h"
#include "text/tokenizer/steps/normalizer.h"

namespace snug::text {

// Reads "precompiled_charsmap" of `node`; throws UserError if it is damaged.
std::unique_ptr<Normalizer> read_precompiled(const JsonNode& node);

}  // namespace snug::text
