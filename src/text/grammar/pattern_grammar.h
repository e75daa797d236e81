// Regular expressions as parts of a grammar.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "text/grammar/byte_grammar.h"

namespace snug::text {

// Builds one character of a set, as it is written where the expression stands: as itself, or in
// JSON's spelling.
using CharacterSpelling = std::function<PlaceId(const CodePointSet& set, PlaceId next)>;

enum class PatternPart : uint8_t {
  whole,     // the expression matches the whole text, as re.fullmatch
  anywhere,  // there is a match within the text, as re.search
};

// The texts that match, followed by `next`. Throws std::invalid_argument that names what is wrong
// or not built, and where.
PlaceId add_pattern(GrammarBuilder& builder, std::string_view expression, PatternPart part,
                    const CharacterSpelling& spelling, PlaceId next);

// The texts that match as a whole.
ByteGrammar regex_grammar(std::string_view expression);

}  // namespace snug::text
