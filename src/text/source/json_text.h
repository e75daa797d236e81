// What tables hold as JSON: their rows become JSON lines (record_file.h). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace snug::text {

// Appends a JSON string. Bytes that are no UTF-8 stay: what reads the record says so, with its
// line.
void append_json_string(std::string& to, std::string_view text);

// Appends the line of a row that cannot be read: a text that says why, in place of an object.
void append_unread_row(std::string& to, std::string_view why);

}  // namespace snug::text
