// A JSON document as values of a template: keys keep their order, and numbers are as Python reads
// them.
#pragma once

#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::text::jinja {

// Requires text that base/json_parser.h has taken. Throws TemplateError for an integer beyond 64
// bits.
Value value_of_json(std::string_view text);

}  // namespace snug::text::jinja
