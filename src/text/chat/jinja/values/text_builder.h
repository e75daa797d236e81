// A text that grows by appending. Memory is charged before it is allocated (meter.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

class TextBuilder {
 public:
  TextBuilder() = default;
  explicit TextBuilder(size_t size) { make_room(size); }

  void add(std::string_view part) {
    make_room(part.size());
    text_ += part;
  }
  void add(char c) {
    make_room(1);
    text_ += c;
  }
  void add_code_point(char32_t c);
  // Appends the part `times` times; nothing if `times` is below 1.
  void add_times(std::string_view part, int64_t times);

  size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  std::string_view view() const { return text_; }

  std::string take() { return std::move(text_); }
  Value take_value(bool is_safe = false) { return Value::charged_text(take(), is_safe); }

 private:
  void make_room(size_t size) {
    if (size > text_.capacity() - text_.size()) grow(size);
  }
  void grow(size_t size);

  std::string text_;
};

}  // namespace snug::text::jinja
