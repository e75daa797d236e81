#include "text/record/message_turns.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/lower_case.h"
#include "text/record/message_role.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;
using Kind = Value::Kind;

constexpr auto kUserWords = std::to_array<std::string_view>({"user", "human", "prompter"});
constexpr auto kAssistantWords =
    std::to_array<std::string_view>({"assistant", "gpt", "chatgpt", "bot", "chatbot"});
// These mean so in twos alone.
constexpr auto kQuestionWords =
    std::to_array<std::string_view>({"input", "question", "prompt", "query", "instruction"});
constexpr auto kAnswerWords =
    std::to_array<std::string_view>({"output", "answer", "response", "completion"});

using TurnEntry = std::pair<Value, Value>;

// The entry of an object whose name is one of `names`, in any case; null where it has none.
const TurnEntry* entry_of(const Dict& object, std::span<const std::string_view> names) {
  for (const std::string_view name : names)
    for (const TurnEntry& entry : object.entries())
      if (base::lower_case(entry.first.as_text()) == name) return &entry;
  return nullptr;
}

// What an object says in each role.
struct Turn {
  const TurnEntry* system = nullptr;
  const TurnEntry* asked = nullptr;
  const TurnEntry* answered = nullptr;
};

Turn turn_of(const Value& item) {
  if (!item.is(Kind::dict)) return {};
  const Dict& object = item.as_dict();
  constexpr auto kOfMessages =
      std::to_array<std::string_view>({"role", "from", "content", "value"});
  if (entry_of(object, kOfMessages) != nullptr) return {};
  Turn turn{entry_of(object, std::array{std::string_view("system")}), entry_of(object, kUserWords),
            entry_of(object, kAssistantWords)};
  const TurnEntry* question = entry_of(object, kQuestionWords);
  const TurnEntry* answer = entry_of(object, kAnswerWords);
  if (turn.asked == nullptr && (turn.answered != nullptr || answer != nullptr))
    turn.asked = question;
  if (turn.answered == nullptr && turn.asked != nullptr) turn.answered = answer;
  const bool says_something = turn.asked != nullptr || turn.answered != nullptr;
  return says_something || object.entries().size() == 1 ? turn : Turn{};
}

bool is_turn(const Turn& turn) {
  return turn.system != nullptr || turn.asked != nullptr || turn.answered != nullptr;
}

bool is_unsaid(const TurnEntry* entry) { return entry == nullptr || entry->second.is(Kind::none); }

void add_message(std::string_view role, const Value& content, Dict fields, List& messages) {
  Dict message;
  message.set(Value::text("role"), Value::text(std::string(role)));
  message.set(Value::text("content"), content);
  for (const auto& [key, value] : fields.entries()) message.set(key, value);
  messages.push_back(Value::dict(std::move(message)));
}

// `is_answered_next`: the turn after it begins with an answer, as tables have it that hold one side
// a turn, and null for the other.
void add_turn(const Dict& object, const Turn& turn, bool is_answered_next, List& messages) {
  Dict others;
  for (const TurnEntry& entry : object.entries())
    if (&entry != turn.system && &entry != turn.asked && &entry != turn.answered)
      others.set(entry.first, entry.second);
  const bool has_answer =
      turn.answered != nullptr && !(is_unsaid(turn.answered) && is_answered_next);
  if (!is_unsaid(turn.system)) add_message("system", turn.system->second, {}, messages);
  if (!is_unsaid(turn.asked))
    add_message("user", turn.asked->second, has_answer ? Dict() : others, messages);
  if (has_answer) add_message("assistant", turn.answered->second, others, messages);
}

// Where the words of a text begin that says itself whose turn it is ("Human: ..."); 0 for others.
size_t end_of_speaker(const std::string& text) {
  constexpr size_t kLongestName = 12;
  const size_t colon = text.find(':');
  const bool is_name = colon <= kLongestName && known_role(std::string_view(text).substr(0, colon));
  return is_name ? text.find_first_not_of(' ', colon + 1) : 0;
}

List messages_of_texts(const List& items) {
  const bool have_speakers = std::ranges::all_of(
      items, [](const Value& item) { return end_of_speaker(item.as_text()) != 0; });
  List messages;
  for (const Value& item : items) {
    const std::string& text = item.as_text();
    const size_t begin = have_speakers ? std::min(end_of_speaker(text), text.size()) : 0;
    const std::string_view speaker = messages.size() % 2 == 0 ? "user" : "assistant";
    add_message(have_speakers ? std::string_view(text).substr(0, text.find(':')) : speaker,
                Value::text(text.substr(begin)), {}, messages);
  }
  return messages;
}

}  // namespace

List messages_of_turns(const List& items) {
  if (std::ranges::all_of(items, [](const Value& item) { return item.is(Kind::text); }))
    return messages_of_texts(items);
  List messages;
  for (size_t i = 0; i < items.size(); ++i) {
    const Turn turn = turn_of(items[i]);
    if (!is_turn(turn))
      messages.push_back(items[i]);
    else
      add_turn(items[i].as_dict(), turn,
               i + 1 < items.size() && is_unsaid(turn_of(items[i + 1]).asked), messages);
  }
  return messages;
}

}  // namespace snug::text
