#include "program/text/text_attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

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

// The name of a part in the text of its decision: empty of the one that is called as the decision.
std::string_view text_name(std::string_view decision, std::string_view part) {
  if (part == decision) return {};
  const bool repeats = part.starts_with(decision) && part[decision.size()] == '_';
  return repeats ? part.substr(decision.size() + 1) : part;
}

// Of a struct the part without a name, then those that are not as in the default struct.
template <HasParts Value>
std::string value_text(std::string_view decision, const Value& value) {
  std::string text;
  const Value defaults;
  for_each_part_of<Value>([&](const auto& part) {
    const std::string_view name = text_name(decision, part.name);
    if (name.empty())
      text += value_text(part.of(value));
    else if (part.of(value) != part.of(defaults))
      text += fmt::format(" {}{}", name, value_text(part.of(value)));
  });
  return text;
}
template <typename Value>
std::string value_text(std::string_view /*field*/, const Value& value) {
  return value_text(value);
}

template <typename Value>
bool differs(const Value& a, const Value& b) {
  return !(a == b);
}
// Zeros of different sign count as different values.
template <>
bool differs(const float& a, const float& b) {
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

template <typename Value>
void parse_value(LineCursor& cursor, std::string_view /*field*/, Value& value) {
  parse_value(cursor, value);
}

template <HasParts Value>
bool accept_part(LineCursor& cursor, std::string_view decision, Value& value) {
  bool found = false;
  for_each_part_of<Value>([&](const auto& part) {
    const std::string_view name = text_name(decision, part.name);
    if (found || name.empty() || !cursor.accept_word(name)) return;
    found = true;
    parse_value(cursor, part.of(value));
  });
  return found;
}

// The parts of a struct, after the one that has no name, if it has such a part.
template <HasParts Value>
void parse_value(LineCursor& cursor, std::string_view decision, Value& value) {
  std::vector<std::string_view> names;
  bool is_begun = accept_part(cursor, decision, value);
  for_each_part_of<Value>([&](const auto& part) {
    if (const auto name = text_name(decision, part.name); !name.empty())
      names.push_back(name);
    else if (!is_begun) {
      parse_value(cursor, part.of(value));
      is_begun = true;
    }
  });
  while (accept_part(cursor, decision, value)) is_begun = true;
  if (!is_begun || cursor.at_word())
    cursor.fail_expected(fmt::format("a part of '{}': {}", decision, fmt::join(names, ", ")));
}

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
    parse_value(cursor, name, attributes.*member);
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
      if (differs(values.*member, defaults.*member)) add(name, value_text(name, values.*member));
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
