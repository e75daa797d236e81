#include "text/chat/other_roles.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "text/chat/fitted_conversation.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

bool is_other_learned(const Message& message) {
  return !message.is_assistant() && message.is_learned();
}

// A letter that the text neither begins nor ends with, white space aside.
std::string letter_at_no_end(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const char first = text[text.find_first_not_of(kSpace)];
  const char last = text[text.find_last_not_of(kSpace)];
  for (const char letter : {'Q', 'Z'})
    if (letter != first && letter != last) return {letter};
  return "X";
}

size_t common_begin(std::string_view left, std::string_view right) {
  return static_cast<size_t>(
      std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first - left.begin());
}

size_t common_end(std::string_view left, std::string_view right) {
  return static_cast<size_t>(
      std::mismatch(left.rbegin(), left.rend(), right.rbegin(), right.rend()).first -
      left.rbegin());
}

}  // namespace

bool OtherRoles::are_learned(const Conversation& conversation) {
  return std::ranges::any_of(conversation.messages, is_other_learned);
}

OtherRoles::Span OtherRoles::find_one(const Conversation& conversation, const std::string& whole,
                                      size_t index) const {
  const Message& message = conversation.messages[index];
  const std::string letter = letter_at_no_end(message.content());
  Conversation other = conversation;
  other.messages[index] = message.with_content(letter);
  const auto text = try_render(other, render_);
  if (text == whole)
    base::throw_user_error(
        "message {}: the chat template does not write the text of this message of the role {}, "
        "which is to be learned; choose a template that writes it with chat_template=, or take the "
        "role out of roles_to_train",
        index + 1, message.role());
  const std::string changed = text.value_or("");
  const size_t begin = common_begin(whole, changed);
  const size_t after =
      common_end(std::string_view(whole).substr(begin), std::string_view(changed).substr(begin));
  if (!text || changed.substr(begin, changed.size() - after - begin) != letter)
    base::throw_user_error(
        "message {}: what of the text is that of this message of the role {} cannot be told, since "
        "the chat template writes it more than once, or refuses another text in its place; choose "
        "another template with chat_template=, or take the role out of roles_to_train",
        index + 1, message.role());
  return {begin, whole.size() - after};
}

// White space may stand before that token.
size_t OtherRoles::with_end_of_turn(const std::string& whole, size_t end,
                                    std::span<const TextSpan> added) const {
  const auto next = std::ranges::lower_bound(added, end, {}, &TextSpan::begin);
  if (next == added.end() || std::ranges::find(ends_, next->id) == ends_.end()) return end;
  const auto between = std::string_view(whole).substr(end, next->begin - end);
  return is_blank(between) ? next->end : end;
}

std::vector<OtherRoles::Span> OtherRoles::find(const Conversation& conversation,
                                               const std::string& whole) const {
  std::vector<TextSpan> added = tokenizer_.split_added_tokens(whole);
  std::erase_if(added, [](const TextSpan& span) { return span.id < 0; });
  std::vector<Span> spans;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const Message& message = conversation.messages[i];
    if (!is_other_learned(message) || is_blank(message.content())) continue;
    const auto [begin, end] = find_one(conversation, whole, i);
    spans.push_back({begin, with_end_of_turn(whole, end, added)});
  }
  return merged_spans(std::move(spans), {});
}

std::vector<jinja::Template::Span> merged_spans(std::vector<jinja::Template::Span> some,
                                                std::span<const jinja::Template::Span> others) {
  some.insert(some.end(), others.begin(), others.end());
  std::ranges::sort(some, {}, &jinja::Template::Span::begin);
  for (size_t i = 1; i < some.size(); ++i)
    if (some[i].begin < some[i - 1].end)
      base::throw_user_error(
          "the chat template writes the texts of two messages that are learned into one another; "
          "choose another with chat_template=, or learn fewer roles (roles_to_train)");
  return some;
}

}  // namespace snug::text
