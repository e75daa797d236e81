// The "pattern" of a tokenizer.json component: {"String": ...} or {"Regex": ...}.
#pragma once

#include <string>
#include <string_view>

#include "text/record/json_node.h"
#include "text/regex/regex.h"

namespace snug::text {

// Throws UserError with the place of `component`, which must have the key "pattern".
Regex read_pattern(const JsonNode& component);

// Replaces every match of `pattern` in `text` by `content`. Throws UserError, before it allocates
// memory, if the result would have more than `most` bytes.
void replace_all(std::string& text, const Regex& pattern, std::string_view content, size_t most);

}  // namespace snug::text
