// The named sets of characters of Oniguruma: \p{...}, and [:...:] within brackets.
// Pure functions, any thread.
#pragma once

#include <optional>
#include <string_view>

#include "text/unicode/character_set.h"

namespace snug::text {

// What \p{name} takes: general categories, scripts, and some of the other properties. A name that
// none has becomes a property that PCRE2 refuses when it compiles the expression.
CharacterSet property_set(std::string_view name, bool within_brackets);

// What [:name:] takes within brackets; nothing for a name that Oniguruma does not know.
std::optional<CharacterSet> bracket_set(std::string_view name);

// \w, within brackets and outside of them; \s, \d and \h.
CharacterSet word_set(bool within_brackets);
CharacterSet white_space_set();
CharacterSet digit_set();
CharacterSet hex_digit_set();

}  // namespace snug::text
