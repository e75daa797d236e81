// Text of a generation as it grows, id by id: each push returns what has become certain. A
// character whose bytes are still incomplete is held back.
// One stream, one thread; the tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);

  // Ids that precede the stream and are not printed, such as the prompt: they decide whether the
  // first piece begins with a space.
  void start_after(std::span<const int32_t> ids);

  // The text that `id` completes; may be empty.
  std::string push(int32_t id);

  // What is still held back, with U+FFFD for bytes that never became a character.
  std::string finish();

 private:
  std::string take(bool at_end);

  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  std::vector<int32_t> window_;  // the ids whose text depends on each other
  size_t printed_ids_ = 0;       // of the window, those whose text went out
};

}  // namespace snug::text
