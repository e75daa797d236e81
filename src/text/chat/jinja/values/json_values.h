// Reads a JSON document as template values: keys keep their order, and numbers are as in Python.
#pragma once

#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

// Requires text that base/json_parser.h accepts. Throws TemplateError for an integer beyond 64
// bits.
Value value_of_json(std::string_view text);

}  // namespace snug::text::jinja
