// A conversation in the form that its chat template writes. Data sets hold the same thing in
// several forms, and a template that expects another one refuses it, or writes what no model should
// learn: Python's print of a list, or JSON that is quoted once more.
//   content    A list of parts stays one where the template writes parts. Where it writes texts
//              only, or prints the list, that becomes its texts, joined by line breaks, as servers
//              do it (vLLM, llama.cpp). A text becomes a part where the template writes parts only,
//              as those of models that see images may.
//   arguments  of a call that are JSON as text are parsed where the template would quote them or
//              cannot take them as text; those that are an object become JSON where it takes texts
//              only.
// The template is asked by rendering the one form and the other. Pure functions; any thread.
#pragma once

#include <functional>
#include <optional>

#include "text/chat/conversation.h"

namespace snug::text {

// Throws UserError for a part that is no text, for parts that the template can only print as they
// are, for a message with two thoughts, and for arguments that are text and no JSON object
// where the template writes objects. What the template itself refuses is left to it.
Conversation fitted_conversation(const Conversation& given, const RenderChat& render);

// Whether a template writes texts as parts alone, and a conversation with each text as a part.
bool takes_parts_only(const RenderChat& render);
Conversation with_texts_as_parts(const Conversation& conversation);

// What the template writes, or nothing where it refuses the conversation.
std::optional<std::string> try_render(const Conversation& conversation, const RenderChat& render);

// How often `part` stands in `text`.
size_t occurrences(std::string_view text, std::string_view part);

// The conversation with what `change` makes of each call, a dictionary with name and arguments; a
// call that it gives back as it is stays.
using ChangeCall = std::function<jinja::Dict(size_t message, const jinja::Dict& function)>;
Conversation with_calls(const Conversation& conversation, const ChangeCall& change);

}  // namespace snug::text
