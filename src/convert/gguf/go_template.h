// A chat template in the language of Ollama (Go's text/template), derived from what the folder's
// own template writes. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace snug::convert {

// A message of a conversation.
struct GoMessage {
  std::string role{};  // system, user or assistant
  std::string content{};
};

// What is written around the messages of a conversation. BOS is not part of it, since Ollama adds
// it where the GGUF file says so.
struct GoTemplate {
  std::string without_system{};  // before everything, where there is no system message
  std::string before_system{};
  std::string after_system{};
  std::string before_user{};  // a message that does not follow a system message
  // The same after a system message.
  std::string before_user_after_system{};
  std::string before_answer{};
  std::string after_answer{};
  std::string before_next_answer{};  // at the end of a prompt

  // The prompt for an answer to the last message.
  std::string prompt(const std::vector<GoMessage>& messages) const;
  // The text for a Modelfile.
  std::string source() const;
};

// The form that writes the prompts of the tokenizer's template, for conversations with and without
// a system message; nothing if there is no template, or if it writes something else.
std::optional<GoTemplate> go_template(const text::Tokenizer& tokenizer);

}  // namespace snug::convert
