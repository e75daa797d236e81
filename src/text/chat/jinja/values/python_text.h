// Python's operations on text, which count characters, while std::string counts bytes. They require
// valid UTF-8 and charge the rendering that calls them (meter.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/jinja/meter.h"

namespace snug::text::jinja {

bool is_python_space(char32_t value);  // str.isspace of one character

int64_t length(std::string_view text);  // in characters
// The byte at which character `index` begins; the text's end for an index beyond it.
size_t byte_of(std::string_view text, int64_t index);

enum class Side { left, right, both };

// The text without white space, or without the characters of `set`, at its ends.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> set = std::nullopt);

using Parts = std::vector<std::string_view, MeteredAllocator<std::string_view>>;

// str.split and str.rsplit; without a separator, splits at runs of white space. `most` < 0: no
// limit.
Parts split(std::string_view text, std::optional<std::string_view> separator, int64_t most,
            bool from_right);
Parts split_lines(std::string_view text, bool keep_ends);
std::string replace(std::string_view text, std::string_view old, std::string_view with,
                    int64_t most);
int64_t count(std::string_view text, std::string_view part);  // without overlaps

// Escapes &, <, >, ' and " for HTML.
std::string escape_html(std::string_view text);

// The text filled up to `width` characters; `side`: where the text is placed.
std::string fill(std::string_view text, int64_t width, char32_t with, Side side);

// Upper and lower case. Throw TemplateError for a character whose other case has several characters
// or depends on its position (German sharp s, Greek final sigma).
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title
std::string swap_case(std::string_view text);

}  // namespace snug::text::jinja
