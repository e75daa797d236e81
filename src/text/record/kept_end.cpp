#include "text/record/kept_end.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace snug::text {
namespace {

bool is_system(const Message& message) {
  return message.role() == "system" || message.role() == "developer";
}

// Where turns begin, except the first one.
std::vector<size_t> later_turns(const std::vector<Message>& messages) {
  std::vector<size_t> turns;
  bool is_first = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role() != "user") continue;
    // Several messages of the user's in a row are one turn.
    const bool goes_on = i > 0 && messages[i - 1].role() == "user";
    if (!is_first && !goes_on) turns.push_back(i);
    is_first = false;
  }
  return turns;
}

Conversation from_turn(const Conversation& conversation, size_t begin) {
  Conversation kept{.tools = conversation.tools, .variables = conversation.variables};
  const std::vector<Message>& messages = conversation.messages;
  const auto settings = std::ranges::find_if_not(messages, is_system);
  kept.messages.assign(messages.begin(), settings);
  kept.messages.insert(kept.messages.end(), messages.begin() + static_cast<std::ptrdiff_t>(begin),
                       messages.end());
  return kept;
}

// Whether something of it is learned: a turn whose answer is not learned is no end to keep.
bool has_learned(const Conversation& conversation) {
  return std::ranges::any_of(conversation.messages,
                             [](const Message& message) { return message.is_learned(); });
}

// The record with its prompt from that message on.
Record from_turn(const Record& record, size_t begin) {
  Record kept = record;
  kept.conversation = from_turn(record.conversation, begin);
  if (!record.rejected_conversation.messages.empty())
    kept.rejected_conversation = from_turn(record.rejected_conversation, begin);
  kept.prompt_messages -= record.conversation.messages.size() - kept.conversation.messages.size();
  return kept;
}

// The first of the turns from which on it fits; the last one where it does from none.
size_t first_that_fits(std::span<const size_t> turns, const std::function<bool(size_t)>& fits) {
  size_t low = 0;
  size_t high = turns.size() - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (fits(turns[middle]))
      high = middle;
    else
      low = middle + 1;
  }
  return turns[high];
}

}  // namespace

Document without_oldest_turns(const Conversation& conversation, int64_t most,
                              const std::function<Document(const Conversation&)>& tokenize) {
  std::vector<size_t> turns = later_turns(conversation.messages);
  while (!turns.empty() && !has_learned(from_turn(conversation, turns.back()))) turns.pop_back();
  if (turns.empty()) return tokenize(conversation);
  return tokenize(from_turn(conversation, first_that_fits(turns, [&](size_t begin) {
                              return std::ssize(tokenize(from_turn(conversation, begin)).ids) <=
                                     most;
                            })));
}

Record without_oldest_turns(const Record& record, const std::function<bool(const Record&)>& fits) {
  std::vector<size_t> turns = later_turns(record.conversation.messages);
  std::erase_if(turns, [&](size_t begin) { return begin >= record.prompt_messages; });
  if (turns.empty()) return record;
  return from_turn(
      record, first_that_fits(turns, [&](size_t begin) { return fits(from_turn(record, begin)); }));
}

int64_t prompt_tokens_to_drop(int64_t prompt, int64_t tokens, int64_t most, int64_t first) {
  if (tokens - prompt >= most) return 0;
  // A token of the prompt stays, so that the answer's first one can be predicted.
  return std::clamp<int64_t>(tokens - most, 0, std::max<int64_t>(0, prompt - first - 1));
}

void drop_tokens(Document& document, int64_t first, int64_t count) {
  document.ids.erase(document.ids.begin() + first, document.ids.begin() + first + count);
  document.trained.erase(document.trained.begin() + first,
                         document.trained.begin() + first + count);
}

Document without_prompt_begin(Document document, int64_t most, int32_t start) {
  const auto target = std::ranges::find(document.trained, uint8_t{1});
  const int64_t prompt = target - document.trained.begin();
  const int64_t first = !document.ids.empty() && document.ids[0] == start ? 1 : 0;
  drop_tokens(document, first,
              prompt_tokens_to_drop(prompt, std::ssize(document.ids), most, first));
  return document;
}

}  // namespace snug::text
