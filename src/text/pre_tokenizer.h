// The pre-tokenizer of a tokenizer.json: cuts normalized text into words, which the model then
// merges each on its own. Immutable after reading; apply may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/json_node.h"

namespace snug::text {

// Words over one buffer, in order. Steps either divide words or rewrite the buffer.
struct Words {
  struct Word {
    size_t begin = 0;
    size_t end = 0;
    bool at_text_start = false;  // nothing of the original text comes before it
  };
  std::string buffer;  // valid UTF-8
  std::vector<Word> list;
  size_t most = 0;  // bytes that the buffer may come to (text/growth.h)
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words) const = 0;
};

// Sequence, ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace. Throws
// UserError that names any other.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node);

}  // namespace snug::text
