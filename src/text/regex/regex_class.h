// Reads character classes in brackets as Oniguruma does (Ruby's syntax): nested classes,
// intersections (&&), POSIX brackets, escapes, and hyphens and brackets that stand for themselves.
//   [^(\s|[.,!?])]       any character except ( white space | . , ! ? )
//   [\p{L}&&[^\p{Han}]]  letters that are not Han
// When case is ignored, only classes without complements and intersections inside are supported:
// Oniguruma adds the other cases to the outermost class, PCRE2 to each bracket. Source: Oniguruma
// doc/RE and, for what that leaves open, the library's behaviour.
#pragma once

#include "text/regex/regex_reader.h"
#include "text/unicode/character_set.h"

namespace snug::text {

// Reads the class that opens at the reader's position. Throws std::invalid_argument for a class
// that Oniguruma does not accept or that is not supported.
CharacterSet read_class(RegexReader& reader);

}  // namespace snug::text
