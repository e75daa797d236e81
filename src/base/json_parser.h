// The only parser from JSON text to a document, whatever the file. The depth of values is bounded,
// since code that reads, copies and prints documents is recursive, and a key may occur only once in
// an object, since parsers disagree on which one counts. Time and memory are linear in the length
// of the text.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace snug::base {

// Far above what any format that Snug reads needs: tokenizers nest most deeply, to about 10.
inline constexpr int kMaxJsonDepth = 64;

// Called for keys, values and the ends of arrays and objects as they are read, with the number of
// arrays and objects around them; returning false drops the value.
using JsonFilter = nlohmann::json::parser_callback_t;

// Throws the caller's error for a text that is refused. It is given the problem in printable words
// and the byte offset at which it lies.
using JsonComplaint = std::function<void(const std::string& problem, size_t offset)>;

// Parses exactly one JSON value.
nlohmann::json parse_json_value(std::string_view text, const JsonComplaint& complain,
                                const JsonFilter& filter = {});

// The same with the keys of objects in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const JsonComplaint& complain);

}  // namespace snug::base
