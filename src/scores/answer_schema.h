// Whether answers are JSON and valid under a schema.
#pragma once

#include <string>

#include "scores/score.h"

namespace snug::scores {

// 1 for an answer that is one JSON text and valid under the schema in the file, as
// text/grammar/schema_grammar.h reads it (an object with `properties` has no others, unless
// additionalProperties says so); with any white space, and names in any order. Where two objects of
// the schema have the same names in opposite orders, those of the second must be in the schema's
// order, or all in the first one's. Throws UserError for a file that cannot be read, and for what
// in it is wrong or not built.
Judge schema_judge(const std::string& file);

}  // namespace snug::scores
