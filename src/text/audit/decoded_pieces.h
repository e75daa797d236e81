// A document as the text that its tokens stand for, in pieces at exact bounds of tokens: where
// learning begins or ends, and around each added token (<|im_end|>, </s>). Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/audit/document_reader.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {

struct DecodedPiece {
  std::string text;
  int32_t begin = 0;  // its tokens, as places in the document
  int32_t end = 0;
  bool is_trained = false;
  bool is_added = false;  // a single added token, special ones too
};

// The pieces of what DocumentStore::read gave. Joined they are the document's text. A character
// whose tokens lie on both sides of a bound belongs to the piece with its last token. Without a
// tokenizer (tokens that were made elsewhere) a piece has the ids as its text: "5 17 3".
std::vector<DecodedPiece> decode_pieces(std::span<const int32_t> words, const Tokenizer* tokenizer);

}  // namespace snug::text
