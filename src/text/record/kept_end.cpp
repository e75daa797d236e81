#include "text/record/kept_end.h"

#include <algorithm>
#include <cstddef>
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
  return std::ranges::any_of(conversation.messages, [](const Message& message) {
    return message.is_learned();
  });
}

}  // namespace

Document without_oldest_turns(const Conversation& conversation, int64_t most,
                              const std::function<Document(const Conversation&)>& tokenize) {
  std::vector<size_t> turns = later_turns(conversation.messages);
  while (!turns.empty() && !has_learned(from_turn(conversation, turns.back()))) turns.pop_back();
  if (turns.empty()) return tokenize(conversation);
  const auto fits = [&](const Document& document) { return std::ssize(document.ids) <= most; };
  // The fewest turns that have to go; all but the last one where that does not fit either.
  size_t low = 0;
  size_t high = turns.size() - 1;
  Document kept = tokenize(from_turn(conversation, turns[high]));
  while (low < high) {
    const size_t middle = (low + high) / 2;
    Document tried = tokenize(from_turn(conversation, turns[middle]));
    if (fits(tried)) {
      high = middle;
      kept = std::move(tried);
    } else {
      low = middle + 1;
    }
  }
  return kept;
}

Document without_prompt_begin(Document document, int64_t most, int32_t start) {
  const auto target = std::ranges::find(document.trained, uint8_t{1});
  const int64_t prompt = target - document.trained.begin();
  const int64_t first = !document.ids.empty() && document.ids[0] == start ? 1 : 0;
  const int64_t excess = std::ssize(document.ids) - most;
  // An answer that is too long by itself is cut at its end, and keeps its prompt.
  if (std::ssize(document.ids) - prompt >= most) return document;
  // A token of the prompt stays, so that the answer's first one can be predicted.
  const int64_t gone = std::clamp<int64_t>(excess, 0, std::max<int64_t>(0, prompt - first - 1));
  document.ids.erase(document.ids.begin() + first, document.ids.begin() + first + gone);
  document.trained.erase(document.trained.begin() + first, document.trained.begin() + first + gone);
  return document;
}

}  // namespace snug::text
