#include <fmt/format.h>
#include <utf8proc.h>

#include "text/chat/jinja/values/python_text.h"
#include "text/chat/jinja/values/text_builder.h"
#include "text/chat/jinja/values/value.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

bool is_upper_case(char32_t c) {
  const auto kind = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LT;
}

// Whether a character's upper case in Python has several characters: the unconditional mappings in
// Unicode's SpecialCasing.txt.
bool has_long_upper(char32_t c) {
  return c == 0xDF || c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 || c == 0x587 ||
         (c >= 0x1E96 && c <= 0x1E9A) || (c >= 0x1F50 && c <= 0x1F56 && c % 2 == 0) ||
         (c >= 0x1F80 && c <= 0x1FFC) || (c >= 0xFB00 && c <= 0xFB17);
}

[[noreturn]] void refuse(char32_t c, const char* what) {
  std::string written;
  append_code_point(written, c);
  fail(
      fmt::format("the {} of '{}' takes several characters or depends on its place, which is not "
                  "supported",
                  what, written));
}

char32_t to_upper(char32_t c) {
  if (c >= 0x80 && has_long_upper(c)) refuse(c, "upper case");
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

char32_t to_title(char32_t c) {
  if (c >= 0x80 && has_long_upper(c)) refuse(c, "title case");
  if (c < 0x80) return to_upper(c);
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

char32_t to_lower(char32_t c) {
  if (c == 0x130 || c == 0x3A3) refuse(c, "lower case");
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

// Applies `map` to each character; it is told whether the previous character has case.
template <typename Map>
std::string mapped(std::string_view text, const Map& map) {
  charge_steps(text.size(), kWalkedPerStep);
  TextBuilder out(text.size());
  bool follows_cased = false;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    out.add_code_point(map(c.value, follows_cased));
    const auto kind = utf8proc_category(static_cast<utf8proc_int32_t>(c.value));
    follows_cased = kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
                    kind == UTF8PROC_CATEGORY_LT;
    i += c.size;
  }
  return out.take();
}

}  // namespace

std::string upper(std::string_view text) {
  return mapped(text, [](char32_t c, bool) { return to_upper(c); });
}

std::string lower(std::string_view text) {
  return mapped(text, [](char32_t c, bool) { return to_lower(c); });
}

std::string capitalize(std::string_view text) {
  bool is_first = true;
  return mapped(text, [&](char32_t c, bool) {
    const char32_t result = is_first ? to_title(c) : to_lower(c);
    is_first = false;
    return result;
  });
}

std::string title(std::string_view text) {
  return mapped(text, [](char32_t c, bool follows_cased) {
    return follows_cased ? to_lower(c) : to_title(c);
  });
}

std::string swap_case(std::string_view text) {
  return mapped(text,
                [](char32_t c, bool) { return is_upper_case(c) ? to_lower(c) : to_upper(c); });
}

}  // namespace snug::text::jinja
