#include "engine/answer_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace snug::engine {
namespace {

// The length in bytes of the longest end of `text` that is the beginning of `stop`.
size_t begun(const std::string& text, const std::string& stop) {
  size_t size = std::min(text.size(), stop.size() - 1);
  while (size > 0 && !stop.starts_with(std::string_view(text).substr(text.size() - size))) --size;
  return size;
}

}  // namespace

AnswerText::AnswerText(const text::Tokenizer& tokenizer, std::span<const int32_t> before,
                       AnswerEnd end)
    : decoder_(tokenizer), end_(std::move(end)) {
  decoder_.start_after(before);
}

std::string AnswerText::push(int32_t id) {
  if (has_ended_) return "";
  if (std::ranges::find(end_.ids, id) != end_.ids.end()) {
    std::string rest = finish();
    has_ended_ = true;
    return rest;
  }
  return take(decoder_.push(id));
}

std::string AnswerText::finish() {
  if (has_ended_) return "";
  std::string rest = take(decoder_.finish());
  if (has_ended_) return rest;
  rest += held_;
  held_.clear();
  return rest;
}

std::string AnswerText::take(const std::string& more) {
  held_ += more;
  size_t end = std::string::npos;
  for (const std::string& stop : end_.texts) end = std::min(end, held_.find(stop));
  has_ended_ = end != std::string::npos;
  if (!has_ended_) {
    size_t kept = 0;
    for (const std::string& stop : end_.texts) kept = std::max(kept, begun(held_, stop));
    end = held_.size() - kept;
  }
  std::string certain = held_.substr(0, end);
  held_.erase(0, has_ended_ ? held_.size() : end);
  return certain;
}

std::string answer_text(const text::Tokenizer& tokenizer, std::span<const int32_t> before,
                        std::span<const int32_t> ids, const AnswerEnd& end) {
  AnswerText answer(tokenizer, before, end);
  std::string text;
  for (const int32_t id : ids) text += answer.push(id);
  return text + answer.finish();
}

}  // namespace snug::engine
