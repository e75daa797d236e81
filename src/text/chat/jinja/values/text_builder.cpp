#include "text/chat/jinja/values/text_builder.h"

#include <algorithm>

#include "text/chat/jinja/meter.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {

// Doubles the capacity, so that the text is moved only once per doubling.
void TextBuilder::grow(size_t size) {
  const size_t room = std::max(text_.size() + size, 2 * text_.capacity());
  charge_bytes(static_cast<int64_t>(room));
  text_.reserve(room);
}

void TextBuilder::add_code_point(char32_t c) {
  std::string bytes;
  append_code_point(bytes, c);
  add(bytes);
}

void TextBuilder::add_times(std::string_view part, int64_t times) {
  if (times <= 0 || part.empty()) return;
  // Checked so that the product cannot overflow.
  if (times > kMaxBytes) fail_by_bytes();
  const auto count = static_cast<size_t>(times);
  make_room(count * part.size());
  if (part.size() == 1) {
    text_.append(count, part.front());
    return;
  }
  charge_steps(count, kSearchedPerStep);
  for (size_t i = 0; i < count; ++i) text_ += part;
}

}  // namespace snug::text::jinja
