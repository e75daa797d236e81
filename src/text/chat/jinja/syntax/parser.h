// Parses a template's source into its syntax tree.
#pragma once

#include <string_view>

#include "text/chat/jinja/syntax/ast.h"

namespace snug::text::jinja {

// Throws SyntaxError (lexer.h) for an error, and for a construct that is not supported, which it
// names.
// `trims_lines`: as TemplateRules has it (template.h).
Syntax parse_template(std::string_view source, bool trims_lines = true);

}  // namespace snug::text::jinja
