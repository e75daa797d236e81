// Excludes messages that are not to be learned from the spans that a template marked as the
// assistant's. Pure; any thread, if the given function allows that.
#pragma once

#include <functional>
#include <vector>

#include "text/chat/conversation.h"
#include "text/chat/jinja/template.h"

namespace snug::text {

// Renders a conversation. Throws UserError if the template refuses it.
using RenderMarked = std::function<jinja::Template::Rendering(const Conversation&)>;

// The spans of `whole`, the rendered conversation, without those of messages that are not to be
// learned. A span belongs to the message whose text changes it. A span that no text changes, such
// as the end of a turn, belongs to the same message as the span before it. Throws UserError if a
// span's message cannot be determined.
std::vector<jinja::Template::Span> learned_spans(const Conversation& conversation,
                                                 const jinja::Template::Rendering& whole,
                                                 const RenderMarked& render);

}  // namespace snug::text
