// What a chat template leaves out of the tools that it writes: descriptions, choices, defaults,
// what a tool returns. A part is looked for in the text by a word at its end; of one that is not
// found there the conversation is rendered without it, and where that changes nothing it is not
// written. Parts are told by their keys, "tools.parameters.properties.enum", whatever the
// properties are called: what is written of one tool counts as written. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "text/chat/conversation.h"
#include "text/chat/unwritten.h"

namespace snug::text {

// Adds parts of tools, unless `found` has 'tools' as a whole. `whole` is what the template writes
// of the conversation.
void add_unwritten_tool_parts(const Conversation& conversation, const std::string& whole,
                              const RenderChat& render, std::vector<Unwritten>& found);

}  // namespace snug::text
