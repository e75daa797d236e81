// Texts of a conversation of which a chat template writes only some: it cuts off a thought, or
// takes something out of the middle. A text that is written as it stands is not looked at. Of
// others a word is written in place of the text, which shows what the template writes of it; what
// has fewer letters was cut. Where the template writes other letters (capitals, escapes), words
// between those of the text tell what is left out. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "text/chat/conversation.h"
#include "text/chat/unwritten.h"

namespace snug::text {

// Adds texts that are written in part, unless `found` names their field already. `whole` is what
// the template writes of the conversation.
void add_cut_texts(const Conversation& conversation, const std::string& whole,
                   const RenderChat& render, std::vector<Unwritten>& found);

// The beginning of words that stand nowhere in the text.
std::string stem_not_in(const std::string& text);

}  // namespace snug::text
