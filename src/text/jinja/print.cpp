#include "text/jinja/print.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <array>
#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// str.isprintable: neither "other" nor a separator, except the space.
bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto kind = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return kind < UTF8PROC_CATEGORY_ZS && kind != UTF8PROC_CATEGORY_CN;
}

std::string quote(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const bool has_double = text.find('"') != std::string::npos;
  const char32_t mark = has_single && !has_double ? U'"' : U'\'';
  std::string out(1, static_cast<char>(mark));
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    if (c.value == mark || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out += text.substr(i, c.size);
    } else {
      const auto code = static_cast<uint32_t>(c.value);
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
    i += c.size;
  }
  out += static_cast<char>(mark);
  return out;
}

std::string joined(const List& items) {
  std::string out;
  for (const Value& item : items) {
    if (!out.empty()) out += ", ";
    out += print_quoted(item);
  }
  return out;
}

std::string print_dict(const Dict& dict) {
  std::string out = "{";
  for (const auto& [key, value] : dict.entries())
    out += fmt::format("{}{}: {}", out.size() == 1 ? "" : ", ", print_quoted(key),
                       print_quoted(value));
  return out += '}';
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

std::string print(const Value& value) {
  if (value.is(Kind::text)) return value.as_text();
  if (value.is(Kind::undefined)) return "";
  return print_quoted(value);
}

std::string print_quoted(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "None";
    case Kind::boolean:
      return value.as_boolean() ? "True" : "False";
    case Kind::integer:
      return std::to_string(value.as_integer());
    case Kind::real:
      return print_real(value.as_real());
    case Kind::text:
      return value.is_safe() ? fmt::format("Markup({})", quote(value.as_text()))
                             : quote(value.as_text());
    case Kind::list:
      return fmt::format("[{}]", joined(value.items()));
    case Kind::tuple:
      return fmt::format("({}{})", joined(value.items()), value.items().size() == 1 ? "," : "");
    case Kind::dict:
      return print_dict(value.as_dict());
    default:
      fail(fmt::format("a {} cannot be printed", value.type_name()));
  }
}

}  // namespace snug::text::jinja
