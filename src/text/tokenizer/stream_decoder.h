// Decodes the text of a generation id by id: each push returns the text that has become certain. A
// character whose bytes are still incomplete is held back. One object per stream and thread; the
// tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace snug::text {

class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);

  // Sets ids that precede the stream and are not printed, such as the prompt: they decide whether
  // the first piece begins with a space.
  void start_after(std::span<const int32_t> ids);

  // Returns the text that `id` completes, which may be empty.
  std::string push(int32_t id);

  // Returns the text that is still held back, with U+FFFD for bytes that never became a character.
  std::string finish();

 private:
  std::string take(bool at_end);

  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  std::vector<int32_t> window_;  // ids whose texts depend on each other
  size_t printed_ids_ = 0;       // how many of the window's ids have been printed
};

}  // namespace snug::text
