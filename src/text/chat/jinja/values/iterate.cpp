#include "text/chat/jinja/values/iterate.h"

#include <fmt/format.h>

#include <array>

#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// All occurrences of an ASCII character share one value, so that a text's elements take little
// memory.
Value character(std::string_view bytes) {
  static const std::array<Value, 128> kAscii = [] {
    std::array<Value, 128> all{};
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = Value::text(std::string(1, static_cast<char>(i)));
    return all;
  }();
  if (bytes.size() == 1) return kAscii[static_cast<unsigned char>(bytes[0])];
  return Value::text(std::string(bytes));
}

List characters(std::string_view text) {
  List items;
  items.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t size = sequence_length(static_cast<unsigned char>(text[i]));
    items.push_back(character(text.substr(i, size)));
    i += size;
  }
  return items;
}

}  // namespace

Elements::Elements(const Value& value) {
  if (value.is_sequence()) {
    sequence_ = value;
  } else if (value.is(Kind::dict)) {
    own_.reserve(value.as_dict().size());
    for (const auto& entry : value.as_dict().entries()) own_.push_back(entry.first);
  } else if (value.is(Kind::text)) {
    charge_steps(static_cast<int64_t>(value.as_text().size()));
    own_ = characters(value.as_text());
    return;
  } else if (Generator* generator = generator_of(value)) {
    own_ = generator->rest();
  } else if (!value.is(Kind::undefined)) {
    fail(fmt::format("a {} cannot be iterated over", value.type_name()));
  }
  charge_steps(static_cast<int64_t>(size()));
}

List Generator::rest() {
  items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = 0;
  return std::exchange(items_, {});
}

Generator* generator_of(const Value& value) {
  return value.is(Kind::object) ? dynamic_cast<Generator*>(value.as_object()) : nullptr;
}

bool is_iterable(const Value& value) {
  return value.is_sequence() || value.is(Kind::text) || value.is(Kind::dict) ||
         value.is(Kind::undefined) || generator_of(value) != nullptr;
}

Value end_element(const Value& value, bool is_last) {
  if (value.is(Kind::text) && !value.as_text().empty()) {
    const std::string_view text = value.as_text();
    size_t at = is_last ? text.size() - 1 : 0;
    while (is_inside_character(text[at])) --at;
    const size_t size = sequence_length(static_cast<unsigned char>(text[at]));
    return character(text.substr(at, size));
  }
  if (value.is(Kind::dict) && value.as_dict().size() > 0) {
    const auto& entries = value.as_dict().entries();
    return is_last ? entries.back().first : entries.front().first;
  }
  if (value.is_sequence() && !value.items().empty())
    return is_last ? value.items().back() : value.items().front();
  return Value::undefined(is_last ? "the last item of an empty sequence"
                                  : "the first item of an empty sequence");
}

}  // namespace snug::text::jinja
