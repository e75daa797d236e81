#include "generate/chat/chat_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/byte_size.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "generate/chat/chat_record.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/unicode/blank.h"

namespace snug::generate {
namespace {

using text::Message;

constexpr std::string_view kBlanks = " \t\r\n";

std::string memory_text(const ChatMemory& memory) {
  const std::string planned = base::readable_byte_size(memory.planned_bytes);
  if (memory.measured_bytes == 0) return fmt::format("memory {} planned", planned);
  return fmt::format("memory {} planned, {} measured", planned,
                     base::readable_byte_size(memory.measured_bytes));
}

}  // namespace

struct ChatSession::Command {
  std::string_view name;
  std::string_view argument;  // as the help shows it
  std::string_view help;
  bool (ChatSession::*obey)(const std::string& rest);  // false: the chat ends
};

const std::vector<ChatSession::Command>& ChatSession::commands() {
  static const std::vector<Command> table{
      {"/edit", "TEXT", "put TEXT in place of your last message, and answer it",
       &ChatSession::edit},
      {"/regenerate", "", "answer your last message anew", &ChatSession::regenerate},
      {"/retry", "", "the same", &ChatSession::regenerate},
      {"/system", "TEXT|none", "change the system message, or show it",
       &ChatSession::change_system},
      {"/adapter", "DIR|NAME|none", "go on with another adapter, or show it",
       &ChatSession::change_adapter},
      {"/clear", "", "forget all turns; the system message stays", &ChatSession::clear},
      {"/drop", "N", "forget the oldest N turns (1)", &ChatSession::drop},
      {"/save", "FILE", "add the conversation to FILE as a line that 'snug train' reads",
       &ChatSession::save},
      {"/help", "", "show this", &ChatSession::help},
      {"/exit", "", "end; so does Ctrl-D", &ChatSession::exit},
      {"/quit", "", "the same", &ChatSession::exit},
  };
  return table;
}

ChatSession::ChatSession(ChatPartner& partner, ChatStreams streams, ChatSettings settings)
    : partner_(partner), streams_(std::move(streams)), settings_(std::move(settings)) {
  open_history();
  if (!conversation_.messages.empty())
    streams_.note(fmt::format("{} messages of {} go on; /clear forgets them",
                              conversation_.messages.size(), settings_.history.string()));
  if (settings_.system.empty()) return;
  if (const std::string why = partner_.why_no_system(settings_.system); !why.empty())
    base::throw_user_error("the system message cannot be used: {}", why);
  set_system(settings_.system);
}

void ChatSession::open_history() {
  const std::filesystem::path& history = settings_.history;
  if (history.empty()) return;
  if (!partner_.takes_conversations())
    base::throw_user_error(
        "history={} keeps a conversation, and with prompt_format each text is completed alone; "
        "leave one of the two out",
        history.string());
  base::require_writable_folder(std::filesystem::absolute(history).parent_path());
  conversation_.messages = read_chat_record(history);
}

void ChatSession::run() {
  while (const std::optional<std::string> line = streams_.next())
    if (!text::is_blank(*line) && !take(*line)) return;
}

bool ChatSession::take(const std::string& line) {
  if (settings_.is_interactive && line.starts_with('/')) return obey(line);
  say(line);
  return true;
}

bool ChatSession::obey(const std::string& line) {
  const size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string name = line.substr(0, end);
  std::vector<std::string_view> names;
  for (const Command& command : commands()) {
    if (command.name == name) {
      const std::string_view rest = std::string_view(line).substr(end);
      return (this->*command.obey)(std::string(text::jinja::strip(rest, text::jinja::Side::both)));
    }
    names.push_back(command.name);
  }
  const auto nearest = base::nearest_name(name, names);
  streams_.note(fmt::format(
      "{} is no command{}; /help lists them. A message may begin with a slash after a space", name,
      nearest ? fmt::format(", did you mean {}?", *nearest) : ""));
  return true;
}

void ChatSession::say(const std::string& text) {
  std::vector<Message>& messages = conversation_.messages;
  if (!partner_.takes_conversations()) messages.clear();
  if (is_unanswered()) {
    streams_.note("your message before this one has no answer; this one takes its place");
    messages.pop_back();
  }
  messages.emplace_back("user", text);
  ask();
}

bool ChatSession::is_unanswered() const {
  return !conversation_.messages.empty() && conversation_.messages.back().role() == "user";
}

void ChatSession::ask() {
  const ChatReply reply = partner_.answer(conversation_, streams_.answer_text);
  if (!reply.problem.empty()) return cannot_answer(reply.problem);
  if (!reply.fits) return cannot_answer(full_context(reply));
  streams_.answer_end(reply);
  take_reply(reply);
  tell(reply);
}

// What is wrong, and what can be done about it here.
std::string ChatSession::full_context(const ChatReply& reply) const {
  std::string text = fmt::format(
      "the conversation has {} tokens, and the context {}, so that there is no room for an answer",
      reply.prompt_tokens, partner_.context());
  if (settings_.is_interactive)
    text += ". /drop forgets the oldest turn, /clear all of them, and /retry answers then";
  const int64_t more = std::min(2 * partner_.context(), partner_.positions());
  if (more > partner_.context())
    text += fmt::format("; max_length={} at the start gives more room", more);
  else if (!settings_.is_interactive)
    text += "; the model has no more positions, so give it fewer or shorter messages";
  return text;
}

// In a terminal an empty answer can be asked for anew; elsewhere it is the turn's answer.
void ChatSession::take_reply(const ChatReply& reply) {
  if (!reply.text.empty() || !settings_.is_interactive)
    conversation_.messages.emplace_back("assistant", reply.text);
  keep();
}

// Without commands nobody could mend it.
void ChatSession::cannot_answer(const std::string& why) const {
  if (!settings_.is_interactive) throw base::UserError(why);
  streams_.note(why);
}

void ChatSession::tell(const ChatReply& reply) const {
  const int64_t used = reply.prompt_tokens + reply.new_tokens;
  const std::string rate =
      reply.tokens_per_second > 0 ? fmt::format(", {:.1f} tokens/s", reply.tokens_per_second) : "";
  streams_.status(fmt::format("{} tokens{}; {} of {} read; context {} of {}; {}", reply.new_tokens,
                              rate, reply.read_tokens, reply.prompt_tokens, used,
                              partner_.context(), memory_text(partner_.memory())));
  if (reply.finish == engine::Finish::cancelled)
    streams_.note(reply.text.empty() ? "stopped; /retry answers anew"
                                     : "stopped; what is there counts as the answer");
  if (reply.finish == engine::Finish::stop && reply.text.empty())
    streams_.note("the answer is empty; /retry answers anew");
  if (reply.finish != engine::Finish::length) return;
  streams_.note(used >= partner_.context()
                    ? "the answer was cut: the context is full. /drop forgets the oldest turn, "
                      "/clear all of them"
                    : "the answer was cut at max_new_tokens");
}

void ChatSession::keep() const {
  if (settings_.history.empty()) return;
  try {
    base::write_file_atomically(settings_.history, chat_record(conversation_.messages));
  } catch (const base::UserError& error) {
    if (!settings_.is_interactive) throw;
    streams_.note(fmt::format("the history is not kept: {}", error.what()));
  }
}

std::optional<size_t> ChatSession::last_question() const {
  for (size_t i = conversation_.messages.size(); i-- > 0;)
    if (conversation_.messages[i].role() == "user") return i;
  streams_.note("there is no message of yours yet");
  return std::nullopt;
}

bool ChatSession::edit(const std::string& text) {
  const std::optional<size_t> at = last_question();
  if (!at) return true;
  std::vector<Message>& messages = conversation_.messages;
  if (text.empty()) {
    streams_.note(fmt::format("/edit TEXT takes the place of: {}", messages[*at].content()));
    return true;
  }
  messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(*at), messages.end());
  messages.emplace_back("user", text);
  ask();
  return true;
}

bool ChatSession::regenerate(const std::string& /*rest*/) {
  const std::optional<size_t> at = last_question();
  if (!at) return true;
  std::vector<Message>& messages = conversation_.messages;
  messages.erase(messages.begin() + static_cast<std::ptrdiff_t>(*at) + 1, messages.end());
  ask();
  return true;
}

void ChatSession::set_system(const std::string& text) {
  std::vector<Message>& messages = conversation_.messages;
  if (!messages.empty() && messages.front().role() == "system") messages.erase(messages.begin());
  if (!text.empty()) messages.insert(messages.begin(), Message("system", text));
}

bool ChatSession::change_system(const std::string& text) {
  if (text.empty()) {
    const bool has_system =
        !conversation_.messages.empty() && conversation_.messages.front().role() == "system";
    streams_.note(has_system ? conversation_.messages.front().content()
                             : "there is no system message");
    return true;
  }
  const std::string asked = text == "none" ? "" : text;
  const std::string why = asked.empty() ? "" : partner_.why_no_system(asked);
  if (!why.empty()) {
    streams_.note(fmt::format("the system message stays as it was: {}", why));
    return true;
  }
  set_system(asked);
  keep();
  streams_.note("the system message is changed for the answers that follow");
  return true;
}

bool ChatSession::change_adapter(const std::string& folder) {
  const auto shown = [&] {
    return partner_.adapter().empty() ? "no adapter" : "the adapter " + partner_.adapter();
  };
  if (folder.empty()) {
    streams_.note(fmt::format("{} is in use", shown()));
    return true;
  }
  try {
    partner_.use_adapter(folder == "none" ? "" : folder);
    streams_.note(fmt::format("{} answers from now on", shown()));
  } catch (const base::UserError& error) {
    streams_.note(fmt::format("{}; the model goes on with {}", error.what(), shown()));
  }
  return true;
}

bool ChatSession::clear(const std::string& /*rest*/) {
  std::erase_if(conversation_.messages,
                [](const Message& message) { return message.role() != "system"; });
  keep();
  streams_.note("all turns are forgotten");
  return true;
}

bool ChatSession::drop(const std::string& count) {
  int64_t turns = 1;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), turns);
  if (!count.empty() && (error != std::errc() || end != count.data() + count.size() || turns < 1)) {
    streams_.note(fmt::format("/drop {}: expected a number of turns", count));
    return true;
  }
  std::vector<Message>& messages = conversation_.messages;
  int64_t dropped = 0;
  const auto is_question = [](const Message& message) { return message.role() == "user"; };
  for (; dropped < turns; ++dropped) {
    // The last message stays where it waits for an answer.
    const auto first = std::ranges::find_if(messages, is_question);
    if (first == messages.end() || (first + 1 == messages.end() && is_unanswered())) break;
    messages.erase(first, std::find_if(first + 1, messages.end(), is_question));
  }
  keep();
  streams_.note(fmt::format("{} turn{} forgotten", dropped, dropped == 1 ? " is" : "s are"));
  return true;
}

bool ChatSession::save(const std::string& path) {
  if (path.empty() || conversation_.messages.empty()) {
    streams_.note(path.empty() ? "/save FILE: give the name of a file"
                               : "there is nothing to save");
    return true;
  }
  try {
    append_chat_record(path, conversation_.messages);
    streams_.note(fmt::format("saved as a line of {}", path));
  } catch (const base::UserError& error) {
    streams_.note(error.what());
  }
  return true;
}

bool ChatSession::help(const std::string& /*rest*/) {
  for (const Command& command : commands())
    streams_.note(fmt::format("{:<22} {}", fmt::format("{} {}", command.name, command.argument),
                              command.help));
  streams_.note("\"\"\" begins a message of several lines, which ends with \"\"\"");
  streams_.note("Ctrl-C stops an answer");
  return true;
}

bool ChatSession::exit(const std::string& /*rest*/) { return false; }

}  // namespace snug::generate
