// A conversation as one text, in which words at the beginning of a paragraph say whose turn it is,
// as in glaive-function-calling: "USER: ...\n\n\nASSISTANT: ... <|endoftext|>\n\n\nFUNCTION
// RESPONSE: ...". Calls stay the text that the assistant says. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "text/chat/jinja/values/value.h"

namespace snug::text {

// Whether a value is a text that begins with the mark of a turn.
bool is_marked_chat(const jinja::Value& value);

// Its turns, as messages without their marks, the white space around them and <|endoftext|>.
jinja::List messages_of_marks(std::string_view text);

// A system message next to such a text without its mark, "SYSTEM: ".
std::string without_system_mark(const std::string& text);

}  // namespace snug::text
