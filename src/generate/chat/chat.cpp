#include "generate/chat/chat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generate/chat/chat_model.h"
#include "generate/chat/chat_session.h"
#include "generate/chat/chat_terminal.h"

namespace snug::generate {

int chat(const formats::Recipe& recipe, const std::string& history, bool json) {
  ChatModel model(recipe, [] { return ChatTerminal::is_stopped(); });
  ChatTerminal terminal(json);  // from now on Ctrl-C ends no more than an answer
  const ChatStreams streams = terminal.streams();
  ChatSession session(
      model, streams,
      {.is_interactive = terminal.is_interactive(), .system = recipe.system, .history = history});
  streams.note(fmt::format(
      "context {} tokens; /help lists the commands{}", model.context(),
      model.takes_conversations() ? "" : "; without a chat template each text is completed alone"));
  if (!model.adapters().empty())
    streams.note(fmt::format("/adapter NAME answers with one of the adapters {}",
                             fmt::join(model.adapters(), ", ")));
  session.run();
  return 0;
}

}  // namespace snug::generate
