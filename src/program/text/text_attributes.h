// Attributes in the text form: `{transpose_b, alpha 0.5}`. Only fields that differ from their
// defaults are printed, in the order in which each kind lists them. Floats are printed with the
// fewest digits that read back the same value.
#pragma once

#include <string>

#include "program/ir/operation.h"
#include "program/text/text_cursor.h"

namespace snug::program {

// Empty if all attributes have their defaults.
std::string attributes_text(const Attributes& attributes);

// Reads the text between the braces, and the closing brace. Throws base::UserError for a field that
// the kind does not have.
void parse_attributes(LineCursor& cursor, Attributes& attributes);

}  // namespace snug::program
