#include "text/record/marked_chat.h"

#include <array>
#include <utility>

#include "text/unicode/blank.h"

namespace snug::text {
namespace {

struct TurnMark {
  std::string_view text;
  std::string_view role;
};
constexpr TurnMark kSystemMark{"SYSTEM:", "system"};
constexpr std::array kChatMarks{kSystemMark, TurnMark{"USER:", "user"},
                                TurnMark{"ASSISTANT:", "assistant"},
                                TurnMark{"FUNCTION RESPONSE:", "tool"}};

const TurnMark* mark_at_beginning(std::string_view text) {
  for (const TurnMark& mark : kChatMarks)
    if (text.starts_with(mark.text)) return &mark;
  return nullptr;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Where the next turn begins, after an empty line; the text's end where none does.
size_t next_turn(std::string_view text) {
  for (size_t at = text.find("\n\n"); at != std::string_view::npos; at = text.find("\n\n", at)) {
    while (at < text.size() && text[at] == '\n') ++at;
    if (mark_at_beginning(text.substr(at)) != nullptr) return at;
  }
  return text.size();
}

}  // namespace

bool is_marked_chat(const jinja::Value& value) {
  return value.is(jinja::Value::Kind::text) &&
         mark_at_beginning(trimmed(value.as_text())) != nullptr;
}

jinja::List messages_of_marks(std::string_view text) {
  constexpr std::string_view kEnd = "<|endoftext|>";
  using jinja::Value;
  jinja::List messages;
  text = trimmed(text);
  while (const TurnMark* mark = mark_at_beginning(text)) {
    const size_t end = next_turn(text);
    std::string_view said = trimmed(text.substr(mark->text.size(), end - mark->text.size()));
    if (said.ends_with(kEnd)) said = trimmed(said.substr(0, said.size() - kEnd.size()));
    jinja::Dict message;
    message.set(Value::text("role"), Value::text(std::string(mark->role)));
    message.set(Value::text("content"), Value::text(std::string(said)));
    messages.push_back(Value::dict(std::move(message)));
    text.remove_prefix(end);
  }
  return messages;
}

std::string without_system_mark(const std::string& text) {
  const std::string_view inner = trimmed(text);
  return std::string(
      inner.starts_with(kSystemMark.text) ? trimmed(inner.substr(kSystemMark.text.size())) : text);
}

}  // namespace snug::text
