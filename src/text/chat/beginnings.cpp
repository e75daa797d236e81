#include "text/chat/beginnings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/chat/jinja/allowance.h"

namespace snug::text {
namespace {

// Messages that a stretch has at least. Each is rendered with half of the stretch before it.
constexpr size_t kStretch = 16;
// How far its end is looked for, and how many of the first messages may stand before it.
constexpr size_t kMostStretch = 4 * kStretch;
constexpr size_t kMostHead = 12;
constexpr size_t kMostTakenWhole = 8;

}  // namespace

Beginnings::Beginnings(const Conversation& conversation, std::string_view whole, Render render)
    : conversation_(conversation), whole_(whole), render_(std::move(render)) {
  last_ = next_border(0).value_or(std::min(kStretch, conversation.messages.size()));
}

// The first messages, after which this one follows in the same roles as where it stands, with as
// many messages between as an alternation of two has.
std::optional<size_t> Beginnings::head_before(size_t message) const {
  const auto& messages = conversation_.messages;
  for (const size_t stride : {2, 1})
    for (size_t head = 1; head < std::min(kMostHead, message); ++head)
      if ((message - head) % stride == 0 && messages[head].role() == messages[message].role() &&
          messages[head - 1].role() == messages[message - 1].role())
        return head;
  return std::nullopt;
}

// Where the stretch that begins at message `from` may end.
std::optional<size_t> Beginnings::next_border(size_t from) const {
  const size_t end = conversation_.messages.size();
  for (size_t at = from + kStretch; at < std::min(end, from + kMostStretch); ++at)
    if (head_before(at)) return at;
  return end <= from + kMostStretch ? std::optional(end) : std::nullopt;
}

std::optional<std::string> Beginnings::render(size_t messages, bool for_generation) const {
  const auto at = [&](size_t index) {
    return conversation_.messages.begin() + static_cast<std::ptrdiff_t>(index);
  };
  Conversation some{.tools = conversation_.tools, .variables = conversation_.variables};
  some.messages.assign(at(0), at(head_));
  some.messages.insert(some.messages.end(), at(first_), at(messages));
  if (some.messages.empty()) return std::nullopt;
  try {
    return render_(some, for_generation);
  } catch (const base::UserError&) {
    if (jinja::Allowance::is_spent()) throw;
    return std::nullopt;
  }
}

// A few times the beginning up to there is rendered whole where the stretch does not tell.
std::optional<size_t> Beginnings::end_of_stretch() {
  const auto end = end_of(last_);
  if (end || head_ == 0 || taken_whole_ == kMostTakenWhole) return end;
  ++taken_whole_;
  head_ = first_ = begin_ = known_ = 0;
  head_text_.clear();
  return end_of(last_);
}

void Beginnings::go_to(size_t messages) {
  while (messages > last_ && !is_lost_) {
    const auto begin = end_of_stretch();
    const auto head = head_before(last_);
    const auto border = next_border(last_);
    is_lost_ = !begin || !head || !border;
    if (is_lost_) return;
    head_ = *head;
    begin_ = *begin;
    first_ = last_;
    last_ = *border;
    const auto text = render(first_, false);
    is_lost_ = !text;
    head_text_ = text.value_or("");
    known_ = 0;
  }
}

std::optional<size_t> Beginnings::end_of(size_t messages) {
  go_to(messages);
  if (is_lost_ || messages <= first_) return std::nullopt;
  if (known_ != messages) {
    text_ = render(messages, false).value_or("");
    known_ = messages;
  }
  if (text_.size() <= head_text_.size() || !text_.starts_with(head_text_)) return std::nullopt;
  const std::string_view added = std::string_view(text_).substr(head_text_.size());
  return stands_at(begin_, added) ? std::optional(begin_ + added.size()) : std::nullopt;
}

std::optional<size_t> Beginnings::end_of_prompt(size_t messages) {
  const auto end = end_of(messages);
  if (!end) return std::nullopt;
  const auto prompt = render(messages, true);
  if (!prompt || !prompt->starts_with(text_)) return std::nullopt;
  const std::string_view opening = std::string_view(*prompt).substr(text_.size());
  return stands_at(*end, opening) ? std::optional(*end + opening.size()) : std::nullopt;
}

}  // namespace snug::text
