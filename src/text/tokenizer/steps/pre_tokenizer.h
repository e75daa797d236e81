// The pre-tokenizer of a tokenizer.json: cuts normalized text into words, which the model then
// merges each on its own. Immutable after reading; apply may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/record/json_node.h"

namespace snug::text {

// Words over one buffer, in order. Steps either divide words or rewrite the buffer.
//
// A text can be given in pieces: then more text follows the last word of a piece, it is open. A
// step that divides it takes what is certain of it, whatever follows, as words, moves `done` there
// and leaves the rest open; a step that rewrites the buffer leaves the open word out. The next
// piece begins with the text from `done` on. Words come out as they would of the whole.
struct Words {
  struct Word {
    size_t begin = 0;
    size_t end = 0;
    // Bytes at its beginning that come from the first character of the original text: a word that
    // has some stands at the text's start.
    size_t origin = 0;
  };
  std::string buffer;  // valid UTF-8
  std::vector<Word> list;
  bool is_open = false;          // the last word of the list is
  bool splits_at_marks = false;  // no token crosses the place where a Metaspace mark begins
  size_t done = 0;               // bytes of the buffer, as it was given, before the open word
  size_t most = 0;  // bytes that the buffer may come to (text/tokenizer/model/growth.h)

  // Leaves the open word out of what follows.
  void close() {
    if (is_open) list.pop_back();
    is_open = false;
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words) const = 0;
  // Whether it looks at where a word comes from (Words::Word::origin).
  virtual bool asks_origin() const { return false; }
};

// Sequence, ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace,
// BertPreTokenizer, CharDelimiterSplit, FixedLength. Throws UserError that names any other.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonNode& node);

}  // namespace snug::text
