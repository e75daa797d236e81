// Which of the spans that a template marked as the assistant's belong to messages that are not to
// be learned. Pure; any thread, if the function may be called from any.
#pragma once

#include <functional>
#include <vector>

#include "text/chat/conversation.h"
#include "text/chat/jinja/template.h"

namespace snug::text {

// What a conversation renders to. Throws UserError where the template refuses it.
using RenderMarked = std::function<jinja::Template::Rendering(const Conversation&)>;

// The spans of `whole`, what the conversation renders to, less those of messages that say that they
// are not learned. A span is the message's whose text changes it; one that no text changes, such as
// the end of a turn, is that of the span before it. Throws UserError where a span cannot be told.
std::vector<jinja::Template::Span> learned_spans(const Conversation& conversation,
                                                 const jinja::Template::Rendering& whole,
                                                 const RenderMarked& render);

}  // namespace snug::text
