// The "pattern" of a tokenizer.json component: {"String": ...} or {"Regex": ...}.
#pragma once

#include <string>
#include <string_view>

#include "text/record/json_node.h"
#include "text/regex/regex.h"

namespace snug::text {

// Throws UserError at `component`, which holds the key "pattern".
Regex read_pattern(const JsonNode& component);

// Every match of `pattern` in `text` replaced by `content`. Throws UserError, before it takes the
// memory, where that makes more than `most` bytes.
void replace_all(std::string& text, const Regex& pattern, std::string_view content, size_t most);

}  // namespace snug::text
