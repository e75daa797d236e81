#include "program/text/text_attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/words.h"
#include "program/kinds/dispatch.h"

namespace snug::program {
namespace {

std::string value_text(bool value) { return value ? "" : " false"; }
template <typename Integer>
requires std::is_integral_v<Integer> std::string value_text(Integer value) {
  return fmt::format(" {}", value);
}
std::string value_text(float value) {
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return fmt::format(" {}", std::string_view(digits.data(), result.ptr));
}

template <typename Enum>
requires std::is_enum_v<Enum> std::string value_text(Enum value) {
  return fmt::format(" {}", base::word_of(value));
}

template <typename Value>
bool differs(Value a, Value b) {
  return a != b;
}
// Zeros of different sign count as different values.
template <>
bool differs(float a, float b) {
  return std::bit_cast<uint32_t>(a) != std::bit_cast<uint32_t>(b);
}

// A flag without a value means true.
void parse_value(LineCursor& cursor, bool& value) {
  value = !cursor.accept_word("false");
  if (value) cursor.accept_word("true");
}

template <typename Integer>
requires std::is_integral_v<Integer>
void parse_value(LineCursor& cursor, Integer& value) {
  using Limits = std::numeric_limits<Integer>;
  value = static_cast<Integer>(cursor.integer("an integer", Limits::min(), Limits::max()));
}

// Reads one of the words of the enumeration.
template <typename Enum>
requires std::is_enum_v<Enum>
void parse_value(LineCursor& cursor, Enum& value) {
  const size_t begin = cursor.position();
  const std::string word = cursor.word("a word");
  const std::optional<Enum> known = base::from_word<Enum>(word);
  if (!known)
    cursor.fail_at(begin, fmt::format("unknown word '{}'; expected one of: {}", word,
                                      fmt::join(base::all_words<Enum>(), ", ")));
  value = *known;
}

void parse_value(LineCursor& cursor, float& value) { value = cursor.number("a number"); }

// Calls f(name, member pointer) for each field of a kind.
template <typename Struct, typename F>
void for_each_field(F&& f) {
  std::apply([&](const auto&... fields) { (f(fields.name, fields.member), ...); }, Struct::kFields);
}

template <typename Struct>
std::string field_names() {
  std::string names;
  for_each_field<Struct>([&](std::string_view name, auto) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  });
  return names.empty() ? "none" : names;
}

template <typename Struct>
void parse_field(LineCursor& cursor, Struct& attributes) {
  const size_t begin = cursor.position();
  const std::string word = cursor.word("an attribute");
  bool found = false;
  for_each_field<Struct>([&](std::string_view name, auto member) {
    if (name != word) return;
    found = true;
    parse_value(cursor, attributes.*member);
  });
  if (!found)
    cursor.fail_at(begin, fmt::format("unknown attribute '{}'; this kind has: {}", word,
                                      field_names<Struct>()));
}

}  // namespace

std::string attributes_text(const Attributes& attributes) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name, value);
  };
  dispatch<void>(attributes, [&]<typename Struct>(const Struct& values) {
    const Struct defaults;
    for_each_field<Struct>([&](std::string_view name, auto member) {
      if (differs(values.*member, defaults.*member)) add(name, value_text(values.*member));
    });
  });
  return text;
}

void parse_attributes(LineCursor& cursor, Attributes& attributes) {
  while (!cursor.accept('}')) {
    dispatch<void>(attributes, [&](auto& values) { parse_field(cursor, values); });
    if (!cursor.accept(',') && !cursor.peek('}')) cursor.fail_expected("',' or '}'");
  }
}

}  // namespace snug::program
