// Brings a conversation into the form that its chat template expects. Data sets store the same
// content in several forms. A template that expects another form refuses it, or writes what no
// model should learn: Python's printed form of a list, or JSON that is quoted once more.
//   content    A list of parts is kept where the template handles parts. Where it handles texts
//              only, or prints the list, the list is replaced by its texts, joined by line breaks,
//              as servers do it (vLLM, llama.cpp). A text becomes a part where the template handles
//              parts only, which is common for models that read images.
//   arguments  of a call that are JSON text are parsed where the template would quote them or
//              cannot handle text; those that are an object become JSON text where it handles text
//              only.
// What the template handles is found out by rendering both forms. Pure functions; any thread.
#pragma once

#include <functional>
#include <optional>

#include "text/chat/conversation.h"

namespace snug::text {

// Throws UserError for a part that is not text, for parts that the template can only print as a
// list, for a message with two different thoughts, and for arguments that are text but not a JSON
// object where the template needs an object. Anything else that the template refuses is not checked
// here.
Conversation fitted_conversation(const Conversation& given, const RenderChat& render);

// Whether a template writes texts only if they are parts; and the conversation with each text made
// a part.
bool takes_parts_only(const RenderChat& render);
Conversation with_texts_as_parts(const Conversation& conversation);

// The rendered conversation, or nothing if the template refuses it.
std::optional<std::string> try_render(const Conversation& conversation, const RenderChat& render);

// The number of occurrences of `part` in `text`.
size_t occurrences(std::string_view text, std::string_view part);

// The conversation with each call replaced by the result of `change`, which gets a dictionary with
// name and arguments and may return it unchanged.
using ChangeCall = std::function<jinja::Dict(size_t message, const jinja::Dict& function)>;
Conversation with_calls(const Conversation& conversation, const ChangeCall& change);

}  // namespace snug::text
