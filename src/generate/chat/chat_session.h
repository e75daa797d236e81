// A chat: the turns so far, and what the user asks to be done with them. What is typed and what is
// shown comes and goes through functions, so that a test needs no terminal. No turn is ever dropped
// without the user's saying so. One thread.
//
// In a terminal, a line that begins with a slash is a command (/help lists them). Elsewhere each
// line is a message, and only answers are shown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/chat/chat_partner.h"

namespace snug::generate {

struct ChatStreams {
  // What the user says next; nothing at the end.
  std::function<std::optional<std::string>()> next;
  // A part of an answer as it comes, and its end.
  std::function<void(const std::string&)> answer_text;
  std::function<void(const ChatReply&)> answer_end;
  // A line about the chat, and one about the answer that just ended.
  std::function<void(const std::string&)> note;
  std::function<void(const std::string&)> status;
};

struct ChatSettings {
  bool is_interactive = true;       // there are commands, and mistakes end nothing
  std::string system{};             // the system message; empty: none
  std::filesystem::path history{};  // where the conversation is kept; empty: nowhere
};

class ChatSession {
 public:
  // Goes on with the conversation of the history, where there is one. Throws UserError for a
  // history that is none or cannot be written, for one of a partner that takes no conversations,
  // and for a system message that the template does not write.
  ChatSession(ChatPartner& partner, ChatStreams streams, ChatSettings settings);

  // Until the user ends it. Throws UserError, where the session is not interactive, for a message
  // that cannot be answered.
  void run();

  const std::vector<text::Message>& messages() const { return conversation_.messages; }

 private:
  struct Command;
  static const std::vector<Command>& commands();

  void open_history();
  bool take(const std::string& line);
  bool obey(const std::string& line);
  void say(const std::string& text);
  void ask();
  void take_reply(const ChatReply& reply);
  void tell(const ChatReply& reply) const;
  std::string full_context(const ChatReply& reply) const;
  void cannot_answer(const std::string& why) const;
  void keep() const;
  bool is_unanswered() const;
  std::optional<size_t> last_question() const;
  void set_system(const std::string& text);

  bool edit(const std::string& text);
  bool regenerate(const std::string& rest);
  bool change_system(const std::string& text);
  bool change_adapter(const std::string& folder);
  bool clear(const std::string& rest);
  bool drop(const std::string& count);
  bool save(const std::string& path);
  bool help(const std::string& rest);
  bool exit(const std::string& rest);

  ChatPartner& partner_;
  ChatStreams streams_;
  ChatSettings settings_;
  text::Conversation conversation_{};
};

}  // namespace snug::generate
