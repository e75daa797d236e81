// What an assistant calls and may call, in the words of a record. Data sets hold both as lists, as
// one object in place of a list, and as the JSON of these as text; templates read lists of
// dictionaries.
#pragma once

#include <cstddef>
#include <string>

#include "text/chat/conversation.h"
#include "text/record/record_fields.h"

namespace snug::text {

// The calls of a message that is a call itself, or has one in 'function_call': names and arguments,
// which become entries of tool_calls. `written`: text, an object or a list. `number`: of the
// message in the record, from 1. Throws RecordError with it where a call is something else.
jinja::Value read_calls(const RecordFields& fields, const jinja::Value& written, size_t number);

// The list of a field 'tool_calls', whose entries stay as they are written; none for null and for a
// text that is blank. Throws RecordError with the message's number where one is no object.
jinja::Value read_tool_calls(const RecordFields& fields, const jinja::Value& written,
                             size_t number);

// The list of a field 'tools', of message `number`, or of the record, which is number 0; none
// for null and for a text that is blank. Throws RecordError where it holds other than objects.
jinja::Value read_tool_list(const RecordFields& fields, const jinja::Value& written, size_t number);

// What the assistant may call; none where the record says nothing of it.
jinja::Value read_tools(const RecordFields& fields);

// Where a template refuses a conversation: the calls that lack a name or arguments, which may be
// why, "; message 2: call 1 of 'tool_calls' has no 'arguments'". Empty where all have both.
std::string incomplete_calls(const Conversation& conversation);

}  // namespace snug::text
