// Reads what Python prints of a list: doc_to_choice and doc_to_target of a task are templates whose
// text is such a literal.
#pragma once

#include <optional>
#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::generate {

// The value of a literal (texts, numbers, True, False, None, lists, tuples), as ast.literal_eval
// reads it; nothing where the text is none.
std::optional<text::jinja::Value> python_literal(std::string_view text);

}  // namespace snug::generate
