#include "text/chat/learned_turns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/chat/jinja/allowance.h"

namespace snug::text {
namespace {

using Rendering = jinja::Template::Rendering;

bool is_left_out(const Message& message) { return message.is_assistant() && !message.is_learned(); }

std::string_view text_of(const Rendering& rendering, size_t span) {
  const auto [begin, end] = rendering.generated[span];
  return std::string_view(rendering.text).substr(begin, end - begin);
}

constexpr size_t kNobody = SIZE_MAX;

// The conversation with another text in some messages.
Conversation with_other_texts(const Conversation& conversation, std::span<const size_t> indices) {
  Conversation other = conversation;
  for (const size_t index : indices) {
    Message& message = other.messages[index];
    message = message.with_content(message.content().find('Q') != std::string::npos ? "Z" : "Q");
  }
  return other;
}

// Whose text changes each span, asked of one message after the other.
std::vector<size_t> owners_one_by_one(const Conversation& conversation, const Rendering& whole,
                                      const RenderMarked& render,
                                      std::span<const size_t> assistants) {
  std::vector<size_t> owners(whole.generated.size(), kNobody);
  for (const size_t i : assistants) {
    const Rendering other = render(with_other_texts(conversation, {&i, 1}));
    if (other.generated.size() != owners.size())
      base::throw_user_error(
          "message {}: what of the text is its own cannot be told, so that it cannot be left out "
          "of what is learned: with another text the template marks another number of answers",
          i + 1);
    for (size_t span = 0; span < owners.size(); ++span)
      if (text_of(other, span) != text_of(whole, span)) owners[span] = i;
  }
  return owners;
}

// The same of many at once: those with a bit of their number set, and those without it, bit by bit.
// Nothing where a span is not changed by one message alone.
std::optional<std::vector<size_t>> owners_by_bits(const Conversation& conversation,
                                                  const Rendering& whole,
                                                  const RenderMarked& render,
                                                  std::span<const size_t> assistants) {
  const auto bits = static_cast<size_t>(std::bit_width(assistants.size()));
  std::vector<std::array<size_t, 2>> numbers(whole.generated.size());  // bits that change it
  for (size_t bit = 0; bit < bits; ++bit)
    for (const size_t is_set : {0, 1}) {
      std::vector<size_t> some;
      for (size_t i = 0; i < assistants.size(); ++i)
        if (((i >> bit) & 1U) == is_set) some.push_back(assistants[i]);
      const Rendering other = render(with_other_texts(conversation, some));
      if (other.generated.size() != numbers.size()) return std::nullopt;
      for (size_t span = 0; span < numbers.size(); ++span)
        if (text_of(other, span) != text_of(whole, span)) numbers[span][is_set] |= size_t{1} << bit;
    }
  std::vector<size_t> owners;
  for (const auto& [unset, set] : numbers) {
    const bool is_ones = (unset ^ set) == (size_t{1} << bits) - 1 && set < assistants.size();
    if (!is_ones && (unset | set) != 0) return std::nullopt;
    owners.push_back(is_ones ? assistants[set] : kNobody);
  }
  return owners;
}

std::vector<size_t> owners_of(const Conversation& conversation, const Rendering& whole,
                              const RenderMarked& render) {
  constexpr size_t kFew = 32;
  std::vector<size_t> assistants;
  for (size_t i = 0; i < conversation.messages.size(); ++i)
    if (conversation.messages[i].is_assistant()) assistants.push_back(i);
  if (assistants.size() > kFew) {
    try {
      if (auto owners = owners_by_bits(conversation, whole, render, assistants)) return *owners;
    } catch (const base::UserError&) {  // other texts in many messages may be refused
      if (jinja::Allowance::is_spent()) throw;
    }
  }
  return owners_one_by_one(conversation, whole, render, assistants);
}

}  // namespace

std::vector<jinja::Template::Span> learned_spans(const Conversation& conversation,
                                                 const Rendering& whole,
                                                 const RenderMarked& render) {
  const std::vector<Message>& messages = conversation.messages;
  if (std::none_of(messages.begin(), messages.end(), is_left_out)) return whole.generated;
  const std::vector<size_t> owners = owners_of(conversation, whole, render);
  std::vector<jinja::Template::Span> kept;
  size_t owner = kNobody;
  for (size_t span = 0; span < owners.size(); ++span) {
    if (owners[span] != kNobody) owner = owners[span];
    if (owner == kNobody || messages[owner].is_learned()) kept.push_back(whole.generated[span]);
  }
  return kept;
}

}  // namespace snug::text
