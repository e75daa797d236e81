// Attributes in the text form: `{transpose_b, alpha 0.5}`, those that differ from their defaults,
// by the fields that each kind lists. Floats are the shortest digits that read back the same.
#pragma once

#include <string>

#include "program/ir/operation.h"
#include "program/text/text_cursor.h"

namespace snug::program {

// Empty when all attributes have their defaults.
std::string attributes_text(const Attributes& attributes);

// Reads what stands between the braces, and the closing one. Throws base::UserError for a field
// that the kind does not have.
void parse_attributes(LineCursor& cursor, Attributes& attributes);

}  // namespace snug::program
