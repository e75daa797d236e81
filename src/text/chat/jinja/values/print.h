// Values as text: str() and repr() of Python, and JSON as transformers' tojson writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat/jinja/values/text_builder.h"
#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

// The shortest decimal that reads as this number again, as Python writes it: 1.0, 1e+16, nan.
std::string print_real(double value);

// What {{ value }} writes. Throws TemplateError for what Python prints with an address.
void print_to(TextBuilder& out, const Value& value);
std::string print(const Value& value);
// The value as it stands inside of a printed list.
void quote_to(TextBuilder& out, const Value& value);
std::string print_quoted(const Value& value);
// What {{ value }} writes as a value: a text is itself, and safe where it is.
Value printed(const Value& value);

struct JsonStyle {
  std::optional<std::string_view> indent{};  // of one level; none: all on one line
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};

// Python's json.dumps. Throws TemplateError for what it refuses.
Value print_json(const Value& value, const JsonStyle& style);

}  // namespace snug::text::jinja
