#include "text/chat/jinja/syntax/string_literal.h"

#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// Reads digits in `base` from `at` on, at least `least` and at most `most`.
std::optional<char32_t> number(std::string_view text, size_t& at, int base, size_t least,
                               size_t most) {
  char32_t value = 0;
  size_t done = 0;
  while (done < most && at < text.size() && digit_of(text[at]) < base) {
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_of(text[at]));
    ++at;
    ++done;
  }
  if (done < least || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return std::nullopt;
  return value;
}

// The character of a numeric escape that begins at `at`.
std::optional<char32_t> numbered(std::string_view text, size_t& at) {
  const char kind = text[at];
  if (kind >= '0' && kind <= '7') return number(text, at, 8, 1, 3);
  ++at;
  const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  return number(text, at, 16, digits, digits);
}

}  // namespace

std::optional<std::string> unescaped(std::string_view written) {
  constexpr std::string_view kEscapes = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  std::string out;
  for (size_t i = 0; i < written.size();) {
    if (written[i] != '\\') {
      out += written[i++];
      continue;
    }
    if (++i == written.size()) return std::nullopt;
    const char kind = written[i];
    const size_t known = kEscapes.find(kind);
    if (known != std::string_view::npos) {
      out += kMeanings[known];
      ++i;
    } else if (kind == '\n') {
      ++i;
    } else if (kind == 'N') {
      return std::nullopt;
    } else if (kind == 'x' || kind == 'u' || kind == 'U' || (kind >= '0' && kind <= '7')) {
      const auto value = numbered(written, i);
      if (!value) return std::nullopt;
      append_code_point(out, *value);
    } else {
      out += '\\';  // an unknown escape is kept as it is
    }
  }
  return out;
}

}  // namespace snug::text::jinja
