// The decoder of a tokenizer.json, which turns tokens' strings back into text. Immutable after
// reading; apply may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Rewrites the tokens; the text is their concatenation after the last step. Throws UserError if
  // they become more than `most` bytes (text/tokenizer/model/growth.h).
  virtual void apply(std::vector<std::string>& tokens, size_t most) const = 0;

  // What one token adds to a text that has begun.
  enum class Added : uint8_t {
    bytes,    // the rewritten token, whatever stands around it
    unknown,  // that depends on its neighbours
  };
  // Rewrites a token to the bytes that it adds; they may be a part of a character. `is_fused`: a
  // step before this one joins all tokens, so this one sees the whole text.
  virtual Added add(std::string& token, bool& is_fused) const = 0;
};

// Supports Sequence, ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace, WordPiece,
// BPEDecoder, CTC. Throws UserError that names any other.
std::unique_ptr<Decoder> read_decoder(const JsonNode& node);

}  // namespace snug::text
