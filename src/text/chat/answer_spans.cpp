#include "text/chat/answer_spans.h"

#include <algorithm>

#include "base/error.h"
#include "text/chat/fitted_conversation.h"
#include "text/chat/jinja/allowance.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

// Answers of a long conversation that are looked for in both ways.
constexpr size_t kComparedAnswers = 8;

size_t common_prefix(std::string_view left, std::string_view right) {
  return static_cast<size_t>(
      std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first - left.begin());
}

size_t common_suffix(std::string_view left, std::string_view right) {
  return static_cast<size_t>(
      std::mismatch(left.rbegin(), left.rend(), right.rbegin(), right.rend()).first -
      left.rbegin());
}

// For each i, how much of `text` from i on agrees with its beginning (the Z function).
std::vector<size_t> agreements(const std::string& text) {
  std::vector<size_t> z(text.size(), 0);
  for (size_t i = 1, left = 0, right = 0; i < text.size(); ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < text.size() && text[z[i]] == text[i + z[i]]) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
  }
  return z;
}

struct Agreement {
  size_t end = 0;    // where in the text the agreement ends
  size_t bytes = 0;  // and how long it is
};

// The place in [from, to] up to which `text` agrees longest with the end of `pattern`.
Agreement longest_agreement(const std::string& text, size_t from, size_t to,
                            const std::string& pattern) {
  std::string reversed(pattern.rbegin(), pattern.rend());
  const size_t offset = reversed.size();
  reversed.append(text.rend() - static_cast<std::ptrdiff_t>(to), text.rend());
  const std::vector<size_t> z = agreements(reversed);
  Agreement best{to, 0};
  for (size_t end = to; end > from; --end) {
    const size_t bytes = std::min(z[offset + (to - end)], pattern.size());
    if (bytes > best.bytes) best = {end, bytes};
  }
  return best;
}

// A text that begins with another character.
const char* another_than(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == 'Q' ? "Z" : "Q";
}

// The messages that are looked for.
std::vector<size_t> learned_answers(const Conversation& conversation) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < conversation.messages.size(); ++i)
    if (conversation.messages[i].is_assistant() && conversation.messages[i].is_learned())
      indices.push_back(i);
  return indices;
}

[[noreturn]] void fail(size_t index, const std::string& what) {
  base::throw_user_error(
      "message {}: the chat template has no {{% generation %}} marks, and {}, so that the answer "
      "cannot be told from the rest; mark it in the template, or choose another with "
      "chat_template=",
      index + 1, what);
}

}  // namespace

// One answer that is looked for.
struct AnswerFinder::Search {
  const Conversation& conversation;
  const std::string& whole;
  size_t index = 0;                     // of the message
  size_t from = 0;                      // where the answer before it ends
  std::optional<std::string> prompt{};  // the messages before it, for generation
  std::optional<std::string> before{};  // the same, not for generation
};

std::optional<std::string> AnswerFinder::try_render(const Conversation& conversation,
                                                    size_t messages, bool for_generation) const {
  Conversation beginning = conversation;
  beginning.messages.erase(beginning.messages.begin() + static_cast<std::ptrdiff_t>(messages),
                           beginning.messages.end());
  if (messages == 0) return std::nullopt;
  try {
    return render_(beginning, for_generation);
  } catch (const base::UserError&) {
    if (jinja::Allowance::is_spent()) throw;
    return std::nullopt;  // such as a template that wants the user's turn to be the last
  }
}

// The prompt for generation alone, which a conversation that the assistant begins has before it.
std::optional<std::string> AnswerFinder::opening(const Conversation& conversation) const {
  Conversation asked = conversation;
  asked.messages = {Message("user", "Q")};
  const auto prompt = try_render(asked, 1, true);
  const auto before = try_render(asked, 1, false);
  if (!prompt || !before || !prompt->starts_with(*before) || prompt->size() == before->size())
    return std::nullopt;
  return prompt->substr(before->size());
}

// The whole conversation with another text in one message, which begins with another character, and
// with calls of other names.
std::string AnswerFinder::with_other_content(const Conversation& conversation, size_t index) const {
  Conversation other = with_calls(conversation, [&](size_t message, const jinja::Dict& function) {
    jinja::Dict renamed = function;
    const jinja::Value* name = function.find(std::string_view("name"));
    if (message == index && name != nullptr && name->is(jinja::Value::Kind::text))
      renamed.set(jinja::Value::text("name"), jinja::Value::text(another_than(name->as_text())));
    return renamed;
  });
  Message& changed = other.messages[index];
  changed = changed.with_content(another_than(conversation.messages[index].content()));
  try {
    return render_(other, false);
  } catch (const base::UserError&) {
    if (jinja::Allowance::is_spent()) throw;
    fail(index, "it does not take another text in its place");
  }
}

// The bytes that two texts begin with alike, less those of an added token that either cuts.
size_t AnswerFinder::common_tokens(const std::string& left, const std::string& right) const {
  size_t common = common_prefix(left, right);
  for (const std::string* text : {&left, &right})
    for (const TextSpan& span : tokenizer_.split_added_tokens(*text))
      if (span.id >= 0 && span.begin < common && common < span.end) common = span.begin;
  return common;
}

size_t AnswerFinder::begin_of(const Search& search) const {
  const std::string& whole = search.whole;
  if (!search.prompt) fail(search.index, "does not render the messages before this one");
  const std::string& prompt = *search.prompt;
  if (whole.starts_with(prompt)) return prompt.size();
  const size_t stem = search.before ? search.before->size() : 0;
  if (search.before && prompt.starts_with(*search.before) && whole.starts_with(*search.before)) {
    const size_t common = common_tokens(prompt, whole);
    if (common > stem) return common;
  }
  const size_t limit = common_tokens(whole, with_other_content(search.conversation, search.index));
  const Agreement found = longest_agreement(whole, search.from, limit, prompt);
  const bool has_opening = search.before && prompt.starts_with(*search.before);
  const size_t least = search.index == 0 ? prompt.size()
                       : has_opening     ? std::max<size_t>(prompt.size() - stem, 1)
                                         : 1;
  if (found.bytes >= least) return found.end;
  if (has_opening)
    if (const auto begin = begin_after(*search.before, prompt.substr(stem), search, limit))
      return *begin;
  fail(search.index, "its prompt for generation stands nowhere before this message");
}

// Where both what is before and what opens an answer are written otherwise: the messages before end
// where T agrees longest with their end, and there follows what the opening begins with.
std::optional<size_t> AnswerFinder::begin_after(const std::string& before,
                                                const std::string& opening, const Search& search,
                                                size_t limit) const {
  const std::string& whole = search.whole;
  const Agreement found = longest_agreement(whole, search.from, limit, before);
  if (found.bytes == 0) return std::nullopt;
  const size_t common = common_tokens(whole.substr(found.end, limit - found.end), opening);
  if (is_blank(std::string_view(opening).substr(0, common))) return std::nullopt;
  return found.end + common;
}

// Cuts what follows the end of the assistant's turn off the place. `added`: the spans of the text
// up to its end, or of that those which begin in the place.
size_t AnswerFinder::end_of_turn(const std::string& whole, const Place& place,
                                 std::span<const TextSpan> added) const {
  const auto [begin, end, is_whole, before] = place;
  const auto stops = tokenizer_.stop_ids();
  const size_t shared =
      is_whole && before
          ? end - common_suffix(std::string_view(whole).substr(begin, end - begin), *before)
          : end;
  size_t first_shared = 0;
  size_t last = 0;
  size_t last_added = 0;
  for (const TextSpan& span : added) {
    if (span.id < 0 || span.begin < begin) continue;
    last_added = span.end;
    if (std::find(stops.begin(), stops.end(), span.id) == stops.end()) continue;
    last = span.end;
    if (span.begin >= shared && first_shared == 0) first_shared = span.end;
  }
  if (first_shared > 0) return first_shared;
  if (last > 0) return last;
  const bool is_padding =
      last_added > 0 && is_blank(std::string_view(whole).substr(last_added, end - last_added));
  return is_padding ? last_added : end;
}

size_t AnswerFinder::end_of_turn(const Search& search, size_t begin, size_t end,
                                 bool is_whole) const {
  return end_of_turn(search.whole, {begin, end, is_whole, search.before},
                     tokenizer_.split_added_tokens(search.whole.substr(0, end)));
}

size_t AnswerFinder::end_of(const Search& search, size_t begin) const {
  const std::string& whole = search.whole;
  const Conversation& conversation = search.conversation;
  if (search.index + 1 == conversation.messages.size())
    return end_of_turn(search, begin, whole.size(), true);
  const auto alone = try_render(conversation, search.index + 1, false);
  if (!alone) fail(search.index, "does not render the messages up to this one");
  if (whole.starts_with(*alone)) return end_of_turn(search, begin, alone->size(), true);
  const size_t common = common_tokens(*alone, whole);
  std::string rest = alone->substr(common);
  const auto ends_so = [&](const std::optional<std::string>& text) {
    return text && text->ends_with(rest);
  };
  bool is_ending = ends_so(search.before) || ends_so(search.prompt);
  if (!is_ending) {
    std::string ordinary;
    for (const TextSpan& span : tokenizer_.split_added_tokens(rest))
      if (span.id < 0) ordinary += rest.substr(span.begin, span.end - span.begin);
    is_ending = is_blank(ordinary);
  }
  if (is_ending && common > begin) return end_of_turn(search, begin, common, false);
  const size_t limit = common_tokens(whole, with_other_content(conversation, search.index + 1));
  const Agreement found = longest_agreement(whole, begin, std::max(begin, limit), *alone);
  if (found.bytes == 0) fail(search.index, "ends this message otherwise where it is the last");
  return end_of_turn(search, begin, found.end, false);
}

AnswerFinder::Span AnswerFinder::find_one(const Conversation& conversation,
                                          const std::string& whole, size_t index,
                                          size_t from) const {
  Search search{conversation, whole, index, from};
  if (index == 0) {
    search.prompt = opening(conversation);
  } else {
    search.prompt = try_render(conversation, index, true);
    search.before = try_render(conversation, index, false);
  }
  const size_t begin = begin_of(search);
  const size_t end = end_of(search, begin);
  if (begin < from || end <= begin)
    fail(index, "writes this message otherwise than its beginning says");
  return {begin, end};
}

// The answer that stands between the beginnings before and after it, where both tell their ends.
std::optional<AnswerFinder::Span> AnswerFinder::between(Beginnings& beginnings,
                                                        const Search& search,
                                                        std::span<const TextSpan> added) const {
  if (search.index == 0) return std::nullopt;
  const std::string& whole = search.whole;
  const auto begin = beginnings.end_of_prompt(search.index);
  if (!begin) return std::nullopt;
  const std::string_view before =
      std::string_view(whole).substr(0, beginnings.end_of(search.index).value());
  const bool is_last = search.index + 1 == search.conversation.messages.size();
  const auto end = is_last ? std::optional(whole.size()) : beginnings.end_of(search.index + 1);
  if (!end || *begin < search.from || *end <= *begin) return std::nullopt;
  const Place place{*begin, *end, true, before};
  const auto first = std::ranges::lower_bound(added, *begin, {}, &TextSpan::begin);
  const auto last = std::ranges::lower_bound(added, *end, {}, &TextSpan::begin);
  // A token across the end is none of the text up to there.
  const bool is_cut = last != added.begin() && std::prev(last)->end > *end;
  const size_t turn_end =
      is_cut ? end_of_turn(whole, place, tokenizer_.split_added_tokens(whole.substr(0, *end)))
             : end_of_turn(whole, place, {first, last});
  return turn_end > *begin ? std::optional(Span{*begin, turn_end}) : std::nullopt;
}

// Without rendering every beginning; nothing where the answers that are looked for in both ways
// are not the same.
std::optional<std::vector<AnswerFinder::Span>> AnswerFinder::find_soon(
    const Conversation& conversation, const std::string& whole) const {
  Beginnings beginnings(conversation, whole, render_);
  std::vector<TextSpan> added = tokenizer_.split_added_tokens(whole);
  std::erase_if(added, [](const TextSpan& span) { return span.id < 0; });
  const std::vector<size_t> answers = learned_answers(conversation);
  const size_t stride = std::max<size_t>(answers.size() / kComparedAnswers, 1);
  std::vector<Span> spans;
  for (const size_t index : answers) {
    const size_t from = spans.empty() ? 0 : spans.back().end;
    auto found = between(beginnings, {conversation, whole, index, from}, added);
    if (!found || spans.size() % stride == 0) {
      const Span slow = find_one(conversation, whole, index, from);
      if (found && (slow.begin != found->begin || slow.end != found->end)) return std::nullopt;
      found = slow;
    }
    spans.push_back(*found);
  }
  return spans;
}

std::vector<AnswerFinder::Span> AnswerFinder::find(const Conversation& conversation,
                                                   const std::string& whole) const {
  if (conversation.messages.size() > most_rendered_)
    if (auto spans = find_soon(conversation, whole)) return *spans;
  std::vector<Span> spans;
  for (const size_t index : learned_answers(conversation))
    spans.push_back(find_one(conversation, whole, index, spans.empty() ? 0 : spans.back().end));
  return spans;
}

}  // namespace snug::text
