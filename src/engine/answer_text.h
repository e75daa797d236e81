// Turns the ids of an answer into text as they arrive: without the ids that end the answer, and cut
// before the first stop text. Text that may be the beginning of a stop text is held back until that
// is decided. An object serves one answer and one thread; the tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/stream_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::engine {

// What ends an answer.
struct AnswerEnd {
  std::vector<int32_t> ids{};
  std::vector<std::string> texts{};
};

class AnswerText {
 public:
  // `before`: the ids that the answer continues in the same stream; if empty, the answer is decoded
  // as a text of its own.
  AnswerText(const text::Tokenizer& tokenizer, std::span<const int32_t> before, AnswerEnd end);

  // Returns the text that this id makes final; nothing once the answer has ended.
  std::string push(int32_t id);
  // Whether one of the ids or texts that end the answer has been seen.
  bool has_ended() const { return has_ended_; }
  // Returns the text that is still held back.
  std::string finish();

 private:
  std::string take(const std::string& more);

  text::StreamDecoder decoder_;
  AnswerEnd end_;
  std::string held_;
  bool has_ended_ = false;
};

// The whole text of an answer, decoded at once.
std::string answer_text(const text::Tokenizer& tokenizer, std::span<const int32_t> before,
                        std::span<const int32_t> ids, const AnswerEnd& end);

}  // namespace snug::engine
