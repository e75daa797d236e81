#include "train/rewards/command_words.h"

#include <fmt/format.h>

#include <stdexcept>

namespace snug::train {

std::vector<std::string> command_words(std::string_view command) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (quote == '\0' && is_space) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (++i == command.size())
        throw std::invalid_argument("it ends with a backslash, behind which a sign is missing");
      words.back() += command[i];
    } else {
      words.back() += c;
    }
  }
  if (quote != '\0') throw std::invalid_argument(fmt::format("its quote {} is not closed", quote));
  if (words.empty() || words.front().empty())
    throw std::invalid_argument("it names no program; expected exec:PROGRAM");
  return words;
}

}  // namespace snug::train
