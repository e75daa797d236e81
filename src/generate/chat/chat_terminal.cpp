#include "generate/chat/chat_terminal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/console.h"
#include "base/error.h"
#include "base/shown_text.h"
#include "generate/prompts_file/answer_line.h"
#include "text/unicode/utf8.h"

namespace snug::generate {
namespace {

constexpr std::string_view kBlockMark = "\"\"\"";
// The most that Linux's terminals give of a line, its end included: what was typed beyond it is
// lost.
constexpr size_t kTerminalLineBytes = 4095;

std::atomic<bool> was_interrupted{false};

void note_interrupt(int /*signal*/) { was_interrupted = true; }

// A message, or the text of a command, that begins with the mark.
bool begins_block(std::string_view line) {
  const size_t mark = line.find(kBlockMark);
  const std::string_view before = line.substr(0, mark);
  return mark == 0 || (mark != std::string_view::npos && before.starts_with('/') &&
                       before.find(' ') == before.size() - 1);
}

// https://no-color.org: any text in NO_COLOR asks for none.
bool may_dim() {
  const char* const unwanted = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && (unwanted == nullptr || *unwanted == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace

ChatTerminal::ChatTerminal(bool json)
    : json_(json), is_interactive_(::isatty(STDIN_FILENO) != 0), is_dimmed_(may_dim()) {
  was_interrupted = false;
  if (!is_interactive_) return;
  // Without SA_RESTART, so that reading a line ends, too.
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  ::sigaction(SIGINT, &action, &before_);
}

ChatTerminal::~ChatTerminal() {
  if (is_interactive_) ::sigaction(SIGINT, &before_, nullptr);
}

bool ChatTerminal::is_stopped() { return was_interrupted; }

ChatStreams ChatTerminal::streams() {
  const auto note = [this](const std::string& line) {
    if (is_interactive_) say_dimmed(line);
  };
  return {.next = [this] { return next(); },
          .answer_text = [this](const std::string& text) { show_text(text); },
          .answer_end = [this](const ChatReply& reply) { end_answer(reply); },
          .note = note,
          .status = [note](const std::string& line) { note("[" + line + "]"); }};
}

std::optional<std::string> ChatTerminal::next() {
  if (!is_interactive_) return read_line("");
  std::optional<std::string> line = read_line("> ");
  if (line && begins_block(*line)) line = read_block(std::move(*line));
  was_interrupted = false;
  return line;
}

// A line without its end; nothing at the end of standard input.
std::optional<std::string> ChatTerminal::read_line(const char* prompt) {
  for (;;) {
    base::write_to_console(prompt);
    was_interrupted = false;
    char* bytes = nullptr;
    size_t room = 0;
    errno = 0;
    const ssize_t size = ::getline(&bytes, &room, stdin);
    std::string line(bytes == nullptr ? "" : bytes, size < 0 ? 0 : static_cast<size_t>(size));
    std::free(bytes);
    if (size < 0 && errno == EINTR) {
      std::clearerr(stdin);
      base::write_to_console("\n");
      say_dimmed("/exit or Ctrl-D ends");
      continue;
    }
    if (size < 0) {
      if (is_interactive_) base::write_to_console("\n");
      return std::nullopt;
    }
    ++line_;
    if (is_interactive_ && line.size() >= kTerminalLineBytes) {
      say_dimmed(
          "this line is not taken: a terminal gives no more than 4095 bytes of one, so that its "
          "end "
          "may be missing. Break it into lines between \"\"\" and \"\"\"");
      continue;
    }
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    if (text::find_invalid_utf8(line) == std::string::npos) return line;
    if (!is_interactive_)
      base::throw_user_error("standard input: line {} is not valid UTF-8", line_);
    say_dimmed("this line is not taken: it is not valid UTF-8");
  }
}

// All lines up to one that ends with the mark are one message.
std::optional<std::string> ChatTerminal::read_block(std::string first) {
  const size_t begin = first.find(kBlockMark);
  first.erase(begin, kBlockMark.size());
  while (first.size() < begin + kBlockMark.size() || !first.ends_with(kBlockMark)) {
    const std::optional<std::string> more = read_line(". ");
    if (!more) return std::nullopt;
    if (first.size() > begin) first += '\n';
    first += *more;
  }
  first.resize(first.size() - kBlockMark.size());
  if (first.ends_with('\n')) first.pop_back();
  return first;
}

void ChatTerminal::show_text(const std::string& text) const {
  if (json_) return;
  // Into a pipe goes the text as it is, onto a terminal without what would disturb it.
  if (::isatty(STDOUT_FILENO) != 0)
    base::write_to_output(text);
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
  base::flush_output();
}

void ChatTerminal::end_answer(const ChatReply& reply) {
  const int64_t index = answers_++;
  if (json_) {
    const nlohmann::ordered_json answer{{"index", index},
                                        {"text", reply.text},
                                        {"finish_reason", finish_word(reply.finish)},
                                        {"prompt_tokens", reply.prompt_tokens},
                                        {"new_tokens", reply.new_tokens}};
    base::print("{}\n", answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    base::print("\n");
  }
  base::flush_output();
}

void ChatTerminal::say_dimmed(const std::string& line) const {
  const std::string shown = base::shown_text(line);
  base::write_to_console(is_dimmed_ ? "\x1b[2m" + shown + "\x1b[0m\n" : shown + "\n");
}

}  // namespace snug::generate
