// Values as text: Python's str() and repr(), and JSON as transformers' tojson writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat/jinja/values/text_builder.h"
#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

// The shortest decimal that reads back as this number, in Python's form: 1.0, 1e+16, nan.
std::string print_real(double value);

// The output of {{ value }}. Throws TemplateError for values that Python prints with a memory
// address.
void print_to(TextBuilder& out, const Value& value);
std::string print(const Value& value);
// The value as it appears in a printed list.
void quote_to(TextBuilder& out, const Value& value);
std::string print_quoted(const Value& value);
// The output of {{ value }} as a value: a text is returned as it is, and stays safe if it is.
Value printed(const Value& value);

struct JsonStyle {
  std::optional<std::string_view> indent{};  // for one level; nothing: everything on one line
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};

// Python's json.dumps. Throws TemplateError for values that it refuses.
Value print_json(const Value& value, const JsonStyle& style);

}  // namespace snug::text::jinja
