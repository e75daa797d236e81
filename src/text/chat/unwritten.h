// What a chat template leaves out of a conversation. Each thing that the conversation says (a text,
// a part, a thought, a name, a call, what may be called) is rendered once more with a word at its
// end; what changes nothing in the text is not written. A tool without a name is left out instead,
// and a variable of the record (chat_template_kwargs) is left out and given another value. Of texts
// that are written in part see cut_texts.h. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "text/chat/conversation.h"

namespace snug::text {

struct Unwritten {
  size_t message = 0;      // which, from 1; 0: it is the conversation's
  std::string field{};     // content, tool_calls, tools, chat_template_kwargs.NAME, ...
  std::string role{};      // of the message
  bool is_all = false;     // nothing of the message is written
  bool is_learned = true;  // the message, if it is the assistant's
  std::string extent{};    // of the field: "the beginning of" or "a part of"; empty: all of it
};

// `whole` is what the template writes of the conversation. At most one for each field of a message.
std::vector<Unwritten> find_unwritten(const Conversation& conversation, const std::string& whole,
                                      const RenderChat& render);

// Throws UserError that names the message where a model would learn something wrong: that the
// assistant answers with nothing, or ends its turn where it made a call. A message that is not
// learned may be written in part.
void refuse_unwritten_answers(const std::vector<Unwritten>& unwritten);

}  // namespace snug::text
