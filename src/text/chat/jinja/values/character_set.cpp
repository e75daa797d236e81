#include "text/chat/jinja/values/character_set.h"

#include <algorithm>

#include "text/unicode/utf8.h"

namespace snug::text::jinja {

CharacterSet::CharacterSet(std::string_view characters) {
  charge_steps(characters.size(), kWalkedPerStep);
  for (size_t i = 0; i < characters.size();) {
    const CodePoint c = code_point_at(characters, i);
    if (c.value < ascii_.size())
      ascii_.set(c.value);
    else
      others_.push_back(c.value);
    i += c.size;
  }
  std::sort(others_.begin(), others_.end());
}

bool CharacterSet::holds(char32_t value) const {
  if (value < ascii_.size()) return ascii_.test(value);
  return std::binary_search(others_.begin(), others_.end(), value);
}

}  // namespace snug::text::jinja
