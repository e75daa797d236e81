// The streams of a chat. Where standard input is a terminal, it asks for lines there, and what is
// not an answer goes to standard error, dimmed unless NO_COLOR is set or it is no terminal. Where
// it is not, each line of it is a message, and nothing is shown but answers. Lines are edited by
// the terminal itself. One at a time, one thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

#include "generate/chat/chat_session.h"

namespace snug::generate {

class ChatTerminal {
 public:
  // `json`: answers are shown as a JSON object in each line, once they are whole. Where standard
  // input is a terminal, Ctrl-C stops an answer from now on, and not the program.
  explicit ChatTerminal(bool json);
  ~ChatTerminal();
  ChatTerminal(const ChatTerminal&) = delete;
  ChatTerminal& operator=(const ChatTerminal&) = delete;

  bool is_interactive() const { return is_interactive_; }
  ChatStreams streams();

  // Whether Ctrl-C came since an answer began.
  static bool is_stopped();

 private:
  std::optional<std::string> next();
  std::optional<std::string> read_line(const char* prompt);
  std::optional<std::string> read_block(std::string first);
  void show_text(const std::string& text) const;
  void end_answer(const ChatReply& reply);
  void say_dimmed(const std::string& line) const;

  bool json_;
  bool is_interactive_;
  bool is_dimmed_;
  int64_t line_ = 0;
  int64_t answers_ = 0;
  struct sigaction before_ {};
};

}  // namespace snug::generate
