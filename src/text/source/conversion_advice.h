// What to do with data in a format that Snug does not read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::text {

// Advice from the ending of the name: a command that makes JSON lines of a table or unpacks an
// archive; that the file be renamed, where the ending says nothing.
std::string conversion_advice(const std::string& path);

// Advice from the bytes that a text begins with, where they are no text in UTF-8: NULs, of what was
// reserved on the disk and never written, or UTF-16.
std::optional<std::string> encoding_advice(const std::string& path, std::string_view begin);

// Advice from the bytes that the file begins with, whatever its name: what it is, and a command
// that makes JSON lines of it or unpacks it into a file next to it. Nothing where they tell of no
// such format.
std::optional<std::string> content_advice(const std::string& path, std::string_view begin);

// Advice for plain text whose first lines are records: the name of JSON lines. `is_whole`: the text
// is all of the file, so that its last line is whole, too.
std::optional<std::string> text_advice(std::string_view begin, bool is_whole);

}  // namespace snug::text
