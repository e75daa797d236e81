// Finds texts of a conversation that a chat template writes only in part, because it cuts off a
// thought or removes something from the middle. A text that appears unchanged in the output is not
// examined. For any other, the text is replaced by a single word, which shows what the template
// writes for the text; if that has fewer letters than the text, something was cut. If the template
// changes letters (capitals, escapes), words inserted into the text show which parts are left out.
// Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "text/chat/conversation.h"
#include "text/chat/unwritten.h"

namespace snug::text {

// Adds the texts that are written only in part, unless `found` already lists their field. `whole`:
// the rendered conversation.
void add_cut_texts(const Conversation& conversation, const std::string& whole,
                   const RenderChat& render, std::vector<Unwritten>& found);

// A prefix for words that do not occur in the text.
std::string stem_not_in(const std::string& text);

}  // namespace snug::text
