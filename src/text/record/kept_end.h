// The end of a record that is longer than max_length: what it keeps with truncation=keep_end.
#pragma once

#include <cstdint>
#include <functional>

#include "text/chat/conversation.h"
#include "text/record/document.h"

namespace snug::text {

// The conversation without as many of its oldest turns as have to go for it to have `most` tokens
// at most. A turn begins with a message of the user's; the system message stays, and so does the
// last turn, also where it is longer by itself. Tokenizes it a few times: the number of turns is
// found by bisection. Returns the conversation's tokens.
Document without_oldest_turns(const Conversation& conversation, int64_t most,
                              const std::function<Document(const Conversation&)>& tokenize);

// A prompt and its answer, without as many tokens of the prompt as have to go, from its beginning
// on, where the answer fits; a first token that the tokenizer puts before every text (`start`, -1:
// none) stays.
Document without_prompt_begin(Document document, int64_t most, int32_t start);

}  // namespace snug::text
