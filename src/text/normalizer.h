// The normalizer of a tokenizer.json: rewrites a text before it is cut into words. Immutable after
// reading; apply may be called from any thread.
#pragma once

#include <memory>
#include <string>

#include "text/json_node.h"

namespace snug::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `text` is valid UTF-8 before and after.
  virtual void apply(std::string& text) const = 0;
};

// Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, ByteLevel. Throws UserError
// that names any other.
std::unique_ptr<Normalizer> read_normalizer(const JsonNode& node);

}  // namespace snug::text
