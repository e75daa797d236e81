// Python's operations on text, which count characters where a std::string counts bytes. Functions
// over valid UTF-8, which charge the rendering that calls them (meter.h).
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
// The byte at which the character `index` begins; the end for one beyond it.
size_t byte_of(std::string_view text, int64_t index);

enum class Side { left, right, both };

// The text without white space, or without the characters of `set`, at the ends.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> set = std::nullopt);

using Parts = std::vector<std::string_view, MeteredAllocator<std::string_view>>;

// str.split and str.rsplit: parts of the text; without a separator, at runs of white space.
// `most` < 0: all.
Parts split(std::string_view text, std::optional<std::string_view> separator, int64_t most,
            bool from_right);
Parts split_lines(std::string_view text, bool keep_ends);
std::string replace(std::string_view text, std::string_view old, std::string_view with,
                    int64_t most);
int64_t count(std::string_view text, std::string_view part);  // without overlaps

// What &, <, >, ' and " become in HTML.
std::string escape_html(std::string_view text);

// Filled up to `width` characters; `side`: where the text stands.
std::string fill(std::string_view text, int64_t width, char32_t with, Side side);

// Upper and lower case. Throw TemplateError for a character whose other case takes several
// characters or depends on its place (German sharp s, Greek final sigma).
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);  // str.title
std::string swap_case(std::string_view text);

}  // namespace snug::text::jinja
