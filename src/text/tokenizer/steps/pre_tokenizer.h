// The pre-tokenizer of a tokenizer.json, which divides normalized text into words; the model then
// encodes each word separately. Immutable after reading; apply may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

// Consecutive words in one buffer. Steps either divide words or rewrite the buffer.
//
// A text can be given in pieces. The last word of a piece is then open, as more text follows it. A
// step that divides an open word splits off the words that are certain whatever follows, advances
// `done` to their end, and leaves the rest open; a step that rewrites the buffer leaves the open
// word out. The next piece begins with the text from `done` on. The words are the same as for the
// whole text.
struct Words {
  struct Word {
    size_t begin = 0;
    size_t end = 0;
    // The leading bytes that come from the first character of the original text; not 0 only for a
    // word at the text's start.
    size_t origin = 0;
  };
  std::string buffer;  // valid UTF-8
  std::vector<Word> list;
  bool is_open = false;          // the last word is open
  bool splits_at_marks = false;  // no token crosses the start of a Metaspace mark
  size_t done = 0;               // bytes of the original buffer before the open word
  size_t most = 0;               // limit of the buffer's bytes (text/tokenizer/model/growth.h)

  // Removes the open word from the list.
  void close() {
    if (is_open) list.pop_back();
    is_open = false;
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words) const = 0;
  // Whether it needs to know where a word comes from (Words::Word::origin).
  virtual bool asks_origin() const { return false; }
};

// Supports Sequence, ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace,
// BertPreTokenizer, CharDelimiterSplit, FixedLength. Throws UserError that names any other.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node);

}  // namespace snug::text
