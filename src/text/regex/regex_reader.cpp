#include "text/regex/regex_reader.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "text/regex/regex_property.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

[[noreturn]] void refuse_case(const RegexReader& reader) {
  reader.refuse("a character outside ASCII where case is ignored");
}

// \p{name}, \P{name}, \p{^name}
CharacterSet read_property(RegexReader& reader, bool within_brackets) {
  const size_t close = reader.in.find('}', reader.at);
  if (reader.peek(2) != '{' || close == std::string_view::npos)
    reader.refuse("a property without braces");
  if (reader.ignores_case) reader.refuse("a property where case is ignored");
  std::string_view name = reader.in.substr(reader.at + 3, close - reader.at - 3);
  bool is_negated = reader.peek(1) == 'P';
  if (name.starts_with('^')) {
    is_negated = !is_negated;
    name.remove_prefix(1);
  }
  reader.at = close + 1;
  CharacterSet set = property_set(name, within_brackets);
  return is_negated ? complement(std::move(set)) : set;
}

// \x41, \x{41}, \u0041
char32_t read_code_point(RegexReader& reader, char kind) {
  const bool has_braces = kind == 'x' && reader.peek(2) == '{';
  const size_t begin = reader.at + (has_braces ? 3 : 2);
  size_t end = begin;
  const size_t most = has_braces ? 8 : (kind == 'u' ? 4 : 2);
  while (end < reader.in.size() && end - begin < most &&
         std::string_view("0123456789abcdefABCDEF").find(reader.in[end]) != std::string_view::npos)
    ++end;
  const std::string digits(reader.in.substr(begin, end - begin));
  const bool is_closed = !has_braces || (end < reader.in.size() && reader.in[end] == '}');
  if (digits.empty() || !is_closed || (kind == 'u' && digits.size() != 4))
    reader.refuse("a malformed character code");
  const unsigned long value = std::stoul(digits, nullptr, 16);
  if (kind == 'x' && !has_braces && value >= 0x80) reader.refuse("a raw byte");
  if (reader.ignores_case && value >= 0x80) refuse_case(reader);
  reader.at = end + (has_braces ? 1U : 0U);
  return static_cast<char32_t>(value);
}

// The set of \s and similar escapes; nothing for any other letter.
std::optional<CharacterSet> class_of(char letter, bool within_brackets) {
  switch (letter) {
    case 's':
      return white_space_set();
    case 'd':
      return digit_set();
    case 'w':
      return word_set(within_brackets);
    case 'h':
      return hex_digit_set();
    default:
      return std::nullopt;
  }
}

std::optional<char32_t> control_of(char letter) {
  constexpr std::string_view kLetters = "rntfaev";
  constexpr std::string_view kControls = "\r\n\t\f\a\x1B\v";
  const size_t found = kLetters.find(letter);
  if (found == std::string_view::npos) return std::nullopt;
  return static_cast<char32_t>(kControls[found]);
}

}  // namespace

void RegexReader::refuse(std::string_view what) const {
  const std::string_view beginning = first_bytes(in, 200);
  throw std::invalid_argument(
      fmt::format("{} in the regular expression '{}{}' is not supported (at byte {})", what,
                  beginning, beginning.size() < in.size() ? "..." : "", at));
}

std::optional<RegexEscape> read_escape(RegexReader& reader, bool within_brackets) {
  const char c = reader.peek(1);
  if (reader.at + 1 >= reader.in.size()) reader.refuse("an escape of nothing");
  if (c == 'p' || c == 'P') return RegexEscape{{}, read_property(reader, within_brackets)};
  if (c == 'u' || c == 'x') return RegexEscape{read_code_point(reader, c), {}};
  const bool is_negated = c >= 'A' && c <= 'Z';
  const char letter = is_negated ? static_cast<char>(c - 'A' + 'a') : c;
  if (auto set = class_of(letter, within_brackets)) {
    reader.at += 2;
    return RegexEscape{{}, is_negated ? complement(std::move(*set)) : std::move(*set)};
  }
  if (const auto control = control_of(c)) {
    reader.at += 2;
    return RegexEscape{control, {}};
  }
  if (is_letter_or_digit(c)) return std::nullopt;
  ++reader.at;
  return RegexEscape{read_character(reader), {}};
}

char32_t read_character(RegexReader& reader) {
  const CodePoint point = code_point_at(reader.in, reader.at);
  if (reader.ignores_case && point.value >= 0x80) refuse_case(reader);
  reader.at += point.size;
  return point.value;
}

}  // namespace snug::text
