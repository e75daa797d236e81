// The text of an answer as its ids come: without the ids that end it, and cut before the first stop
// text. What may be the beginning of a stop text is held back until that is known.
// One answer, one thread; the tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer/stream_decoder.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

// What ends an answer.
struct AnswerEnd {
  std::vector<int32_t> ids{};
  std::vector<std::string> texts{};
};

class AnswerText {
 public:
  // `before`: the ids that the answer continues in the same stream; none: it is a text of its own.
  AnswerText(const text::Tokenizer& tokenizer, std::span<const int32_t> before, AnswerEnd end);

  // The text that becomes certain with this id; nothing once the answer has ended.
  std::string push(int32_t id);
  // Whether one of the ids or of the texts that end it came.
  bool has_ended() const { return has_ended_; }
  // What is still held back.
  std::string finish();

 private:
  std::string take(const std::string& more);

  text::StreamDecoder decoder_;
  AnswerEnd end_;
  std::string held_;
  bool has_ended_ = false;
};

// The whole text of an answer.
std::string answer_text(const text::Tokenizer& tokenizer, std::span<const int32_t> before,
                        std::span<const int32_t> ids, const AnswerEnd& end);

}  // namespace snug::generate
