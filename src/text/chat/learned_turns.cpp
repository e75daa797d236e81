#include "text/chat/learned_turns.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace snug::text {
namespace {

using Rendering = jinja::Template::Rendering;

bool is_left_out(const Message& message) { return message.is_assistant() && !message.is_learned(); }

std::string_view text_of(const Rendering& rendering, size_t span) {
  const auto [begin, end] = rendering.generated[span];
  return std::string_view(rendering.text).substr(begin, end - begin);
}

// The conversation with another text in one message.
Conversation with_other_text(const Conversation& conversation, size_t index) {
  Conversation other = conversation;
  Message& message = other.messages[index];
  message = message.with_content(message.content().find('Q') != std::string::npos ? "Z" : "Q");
  return other;
}

}  // namespace

std::vector<jinja::Template::Span> learned_spans(const Conversation& conversation,
                                                 const Rendering& whole,
                                                 const RenderMarked& render) {
  const std::vector<Message>& messages = conversation.messages;
  if (std::none_of(messages.begin(), messages.end(), is_left_out)) return whole.generated;
  constexpr size_t kNobody = SIZE_MAX;
  std::vector<size_t> owners(whole.generated.size(), kNobody);
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_assistant()) continue;
    const Rendering other = render(with_other_text(conversation, i));
    if (other.generated.size() != owners.size())
      base::throw_user_error(
          "message {}: what of the text is its own cannot be told, so that it cannot be left out "
          "of what is learned: with another text the template marks another number of answers",
          i + 1);
    for (size_t span = 0; span < owners.size(); ++span)
      if (text_of(other, span) != text_of(whole, span)) owners[span] = i;
  }
  std::vector<jinja::Template::Span> kept;
  size_t owner = kNobody;
  for (size_t span = 0; span < owners.size(); ++span) {
    if (owners[span] != kNobody) owner = owners[span];
    if (owner == kNobody || messages[owner].is_learned()) kept.push_back(whole.generated[span]);
  }
  return kept;
}

}  // namespace snug::text
