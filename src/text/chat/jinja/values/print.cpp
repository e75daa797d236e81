#include "text/chat/jinja/values/print.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <array>
#include <charconv>
#include <cmath>

#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// str.isprintable: neither in a category "other" nor a separator, except for the space.
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto kind = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return kind < UTF8PROC_CATEGORY_ZS && kind != UTF8PROC_CATEGORY_CN;
}

void quote_character(TextBuilder& out, const CodePoint& c, std::string_view bytes, char32_t mark) {
  if (c.value == mark || c.value == '\\') {
    out.add('\\');
    out.add(bytes);
  } else if (c.value == '\n') {
    out.add("\\n");
  } else if (c.value == '\r') {
    out.add("\\r");
  } else if (c.value == '\t') {
    out.add("\\t");
  } else if (is_printable(c.value)) {
    out.add(bytes);
  } else {
    const auto code = static_cast<uint32_t>(c.value);
    out.add(code < 0x100     ? fmt::format("\\x{:02x}", code)
            : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                             : fmt::format("\\U{:08x}", code));
  }
}

void quote_text(TextBuilder& out, std::string_view text) {
  charge_steps(text.size(), kWalkedPerStep);
  const bool has_single = text.find('\'') != std::string::npos;
  const bool has_double = text.find('"') != std::string::npos;
  const char mark = has_single && !has_double ? '"' : '\'';
  out.add(mark);
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    quote_character(out, c, text.substr(i, c.size), static_cast<char32_t>(mark));
    i += c.size;
  }
  out.add(mark);
}

void quote_items(TextBuilder& out, const List& items) {
  charge_steps(static_cast<int64_t>(items.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(", ");
    quote_to(out, items[i]);
  }
}

void quote_dict(TextBuilder& out, const Dict& dict) {
  charge_steps(static_cast<int64_t>(dict.size()));
  out.add('{');
  bool is_first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!is_first) out.add(", ");
    is_first = false;
    quote_to(out, key);
    out.add(": ");
    quote_to(out, value);
  }
  out.add('}');
}

}  // namespace

std::string print_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  const std::string_view all(buffer.data(), static_cast<size_t>(end.ptr - buffer.data()));
  const size_t e = all.find('e');
  int exponent = 0;
  const size_t digits_at = all[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(all.data() + digits_at, all.data() + all.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    const char sign = exponent < 0 ? '-' : '+';
    return fmt::format("{}e{}{:02}", all.substr(0, e), sign, std::abs(exponent));
  }
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string text(buffer.data(), fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

void print_to(TextBuilder& out, const Value& value) {
  if (value.is(Kind::text)) return out.add(value.as_text());
  if (!value.is(Kind::undefined)) quote_to(out, value);
}

std::string print(const Value& value) {
  TextBuilder out;
  print_to(out, value);
  return out.take();
}

std::string print_quoted(const Value& value) {
  TextBuilder out;
  quote_to(out, value);
  return out.take();
}

Value printed(const Value& value) {
  if (value.is(Kind::text)) return value;
  TextBuilder out;
  print_to(out, value);
  return out.take_value();
}

void quote_to(TextBuilder& out, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return out.add("Undefined");
    case Kind::none:
      return out.add("None");
    case Kind::boolean:
      return out.add(value.as_boolean() ? "True" : "False");
    case Kind::integer:
      return out.add(std::to_string(value.as_integer()));
    case Kind::real:
      return out.add(print_real(value.as_real()));
    case Kind::text:
      if (value.is_safe()) out.add("Markup(");
      quote_text(out, value.as_text());
      if (value.is_safe()) out.add(')');
      return;
    case Kind::list:
      out.add('[');
      quote_items(out, value.items());
      return out.add(']');
    case Kind::tuple:
      out.add('(');
      quote_items(out, value.items());
      return out.add(value.items().size() == 1 ? ",)" : ")");
    case Kind::dict:
      return quote_dict(out, value.as_dict());
    default:
      fail(fmt::format("a {} cannot be printed", value.type_name()));
  }
}

}  // namespace snug::text::jinja
