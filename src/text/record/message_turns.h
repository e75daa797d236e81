// Turns of a conversation that are written without a role each, as messages: texts, the user's and
// the assistant's in turn unless each names its speaker, and objects that hold a question with its
// answer, under such names as input and output or human and assistant. Pure; any thread.
//   ["Human: a", "Assistant: b"]      the same as of
//   ["a", "b"]                        [{role: user, content: a}, {role: assistant, content: b}]
//   [{"input": "a", "output": "b"}]   the same
//   [{"user": "a"}, {"gpt": "b"}]     the same
#pragma once

#include "text/chat/jinja/values/value.h"

namespace snug::text {

// The items of a list of messages, in which turns of these kinds are messages; all others are as
// they were. What else such an object has is its answer's.
jinja::List messages_of_turns(const jinja::List& items);

}  // namespace snug::text
