// The decoder of a tokenizer.json: token strings back to text. Immutable after reading; apply may
// be called from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the tokens; the text is their concatenation after the last step. Throws UserError
  // where more than `most` bytes come of them (text/tokenizer/model/growth.h).
  virtual void apply(std::vector<std::string>& tokens, size_t most) const = 0;
};

// Sequence, ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace, WordPiece, BPEDecoder, CTC.
// Throws UserError that names any other.
std::unique_ptr<Decoder> read_decoder(const JsonNode& node);

}  // namespace snug::text
