// Classes of characters in brackets as Oniguruma reads them (Ruby's syntax): classes within
// classes, intersections (&&), POSIX brackets, escapes, and hyphens and brackets that stand for
// themselves.
//   [^(\s|[.,!?])]       nothing of ( white space | . , ! ? )
//   [\p{L}&&[^\p{Han}]]  letters that are not Han
// Where case is ignored, only classes without complements and intersections inside are taken:
// Oniguruma adds the other cases to the outermost class, PCRE2 to each bracket.
// Source: Oniguruma doc/RE, and the library itself for what that leaves open.
#pragma once

#include "text/regex/regex_reader.h"
#include "text/unicode/character_set.h"

namespace snug::text {

// Takes the class that opens at the reader's place. Throws std::invalid_argument for one that
// Oniguruma does not read, and for what is not supported.
CharacterSet read_class(RegexReader& reader);

}  // namespace snug::text
