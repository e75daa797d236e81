// The one way from JSON text to a document, whatever the file: values nest boundedly, since what
// reads, copies and prints a document afterwards does so by recursion, and a key stands once in an
// object, since parsers disagree on which one counts. Time and memory grow with the text, not
// faster.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace snug::base {

// Far above what any format that Snug reads needs: tokenizers nest the deepest, to about 10.
inline constexpr int kMaxJsonDepth = 64;

// Sees keys, values and the ends of arrays and objects as they are read, with the number of arrays
// and objects around them; false drops the value.
using JsonFilter = nlohmann::json::parser_callback_t;

// Throws what the caller has to say of a text that is not taken: the problem in words, printable,
// and the byte at which it lies.
using JsonComplaint = std::function<void(const std::string& problem, size_t offset)>;

// Exactly one JSON value.
nlohmann::json parse_json_value(std::string_view text, const JsonComplaint& complain,
                                const JsonFilter& filter = {});

}  // namespace snug::base
