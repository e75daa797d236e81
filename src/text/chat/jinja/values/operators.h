// Python's operators on values. They throw TemplateError for types that an operator does not
// support, for undefined values, and for integers beyond 64 bits, which Python would support.
#pragma once

#include <optional>
#include <string_view>

#include "text/chat/jinja/runtime.h"

namespace snug::text::jinja {

// +, -, *, /, //, %, **
Value binary(Runtime& runtime, std::string_view mark, const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);

// ==, !=, <, <=, >, >=, in, not in
bool compare(std::string_view mark, const Value& left, const Value& right);

// value[begin:end:step] of a text or a sequence; undefined bounds are open.
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step);

}  // namespace snug::text::jinja
