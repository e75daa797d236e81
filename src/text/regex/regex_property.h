// Oniguruma's named sets of characters: \p{...}, and [:...:] within brackets. Pure functions, any
// thread.
#pragma once

#include <optional>
#include <string_view>

#include "text/unicode/character_set.h"

namespace snug::text {

// The set of \p{name}: general categories, scripts, and some of the other properties. An unknown
// name becomes a property that PCRE2 refuses when it compiles the expression.
CharacterSet property_set(std::string_view name, bool within_brackets);

// The set of [:name:] within brackets; nothing for a name that Oniguruma does not know.
std::optional<CharacterSet> bracket_set(std::string_view name);

// The sets of \w, within brackets and outside of them, and of \s, \d and \h.
CharacterSet word_set(bool within_brackets);
CharacterSet white_space_set();
CharacterSet digit_set();
CharacterSet hex_digit_set();

}  // namespace snug::text
