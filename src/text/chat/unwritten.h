// Finds what a chat template leaves out of a conversation. For each item of the conversation (a
// text, a part, a thought, a name, a call, a tool), a word is appended and the conversation is
// rendered again; an item whose word changes nothing in the output is not written. A tool without a
// name is removed instead; a variable of the record (chat_template_kwargs) is removed, and also
// given another value. cut_texts.h handles texts that are written in part. Pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "text/chat/conversation.h"

namespace snug::text {

struct Unwritten {
  size_t message = 0;      // counted from 1; 0: it belongs to the conversation as a whole
  std::string field{};     // content, tool_calls, tools, chat_template_kwargs.NAME, ...
  std::string role{};      // of the message
  bool is_all = false;     // nothing of the message is written
  bool is_learned = true;  // whether the message is learned, if it is the assistant's
  std::string extent{};    // "the beginning of" or "a part of" the field; empty: all of it
};

// `whole`: the rendered conversation. Returns at most one entry for each field of a message.
std::vector<Unwritten> find_unwritten(const Conversation& conversation, const std::string& whole,
                                      const RenderChat& render);

// Throws UserError, naming the message, if a model would learn something wrong: that the assistant
// answers with nothing, or that it ends its turn where it made a call. A message that is not
// learned may be written in part.
void refuse_unwritten_answers(const std::vector<Unwritten>& unwritten);

}  // namespace snug::text
