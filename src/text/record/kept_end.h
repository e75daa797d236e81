// The end of a record that is longer than max_length: what it keeps with truncation=keep_end.
#pragma once

#include <cstdint>
#include <functional>

#include "text/chat/conversation.h"
#include "text/record/document.h"
#include "text/record/record_form.h"

namespace snug::text {

// The conversation without as many of its oldest turns as have to go for it to have `most` tokens
// at most. A turn begins with a message of the user's; the system message stays, and so does the
// last turn, also where it is longer by itself. Tokenizes it a few times: the number of turns is
// found by bisection. Returns the conversation's tokens.
Document without_oldest_turns(const Conversation& conversation, int64_t most,
                              const std::function<Document(const Conversation&)>& tokenize);

// The same of the prompt of answers that are compared: what follows it stays, and so does its last
// turn. `fits` is asked a few times.
Record without_oldest_turns(const Record& record, const std::function<bool(const Record&)>& fits);

// How many tokens of a prompt have to go, from its beginning on, where it and its answer have
// `tokens`; none where the answer does not fit by itself: it is cut at its end, and keeps its
// prompt. `first`: tokens that stay before the others, which the tokenizer puts before every text.
int64_t prompt_tokens_to_drop(int64_t prompt, int64_t tokens, int64_t most, int64_t first);
void drop_tokens(Document& document, int64_t first, int64_t count);

// A prompt and its answer without those; a first token `start` stays (-1: there is none).
Document without_prompt_begin(Document document, int64_t most, int32_t start);

}  // namespace snug::text
