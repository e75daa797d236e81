#include "text/chat/cut_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "text/chat/fitted_conversation.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;
using Kind = Value::Kind;

constexpr const char* kBeginning = "the beginning of";
constexpr const char* kPart = "a part of";
constexpr std::string_view kBlanks = " \t\r\n";

// The text of a message or of one of its parts, and the conversation with another text in its
// place.
struct OwnText {
  size_t message = 0;  // counted from 0
  const char* field = "";
  std::string text;
  std::function<Conversation(std::string)> with;
};

Conversation with_field(const Conversation& conversation, size_t index, const char* field,
                        const Value& value) {
  Conversation changed = conversation;
  Message& message = changed.messages[index];
  message = message.with(field, value);
  if (std::string_view(field) == "reasoning_content") message = message.with("thinking", value);
  return changed;
}

Value with_part(const Value& content, size_t index, std::string_view key, std::string text) {
  List parts = content.items();
  Dict fields = parts[index].as_dict();
  fields.set(Value::text(std::string(key)), Value::text(std::move(text)));
  parts[index] = Value::dict(std::move(fields));
  return Value::list(std::move(parts));
}

void add_part_texts(const Conversation& conversation, size_t index, const Value& content,
                    std::vector<OwnText>& texts) {
  for (size_t part = 0; part < content.items().size(); ++part) {
    if (!content.items()[part].is(Kind::dict)) continue;
    for (const char* key : {"text", "thinking"}) {
      const Value* own = content.items()[part].as_dict().find(std::string_view(key));
      if (own == nullptr || !own->is(Kind::text)) continue;
      texts.push_back({index, "content", own->as_text(), [&, index, part, key](std::string text) {
                         return with_field(conversation, index, "content",
                                           with_part(content, part, key, std::move(text)));
                       }});
    }
  }
}

// All texts of the conversation, which must outlive them.
std::vector<OwnText> texts_of(const Conversation& conversation) {
  std::vector<OwnText> texts;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    for (const char* field : {"content", "reasoning_content"}) {
      const Value* value = conversation.messages[i].find(field);
      if (value == nullptr) continue;
      if (value->is(Kind::list)) add_part_texts(conversation, i, *value, texts);
      if (!value->is(Kind::text)) continue;
      texts.push_back({i, field, value->as_text(), [&, i, field](std::string text) {
                         return with_field(conversation, i, field, Value::text(std::move(text)));
                       }});
    }
  }
  return texts;
}

bool is_written_as_it_is(const std::string& text, const std::string& whole) {
  const size_t begin = text.find_first_not_of(kBlanks);
  const size_t end = text.find_last_not_of(kBlanks) + 1;
  return whole.find(std::string_view(text).substr(begin, end - begin)) != std::string::npos;
}

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), lower_letter);
  return text;
}

// The length in bytes of a mark such as </think> that opens or closes a thought at the beginning of
// the text; 0 if there is none. Templates replace such marks by their own.
size_t thought_mark(std::string_view text) {
  if (text.empty() || text[0] != '<') return 0;
  size_t at = text.size() > 1 && text[1] == '/' ? 2 : 1;
  std::string name;
  while (at < text.size() && name.size() < 16 && lower_letter(text[at]) >= 'a' &&
         lower_letter(text[at]) <= 'z')
    name += lower_letter(text[at++]);
  const bool is_thought =
      name.starts_with("think") || name.starts_with("thought") || name.starts_with("reason");
  return is_thought && at < text.size() && text[at] == '>' ? at + 1 : 0;
}

// The text without white space and thought marks, in lower case.
std::string letters_of(std::string_view text) {
  std::string letters;
  for (size_t at = 0; at < text.size(); ++at) {
    if (const size_t mark = thought_mark(text.substr(at)); mark > 0) {
      at += mark - 1;
      continue;
    }
    if (kBlanks.find(text[at]) == std::string_view::npos) letters += lower_letter(text[at]);
  }
  return letters;
}

// Whether `text` contains all letters of `part` in the same order, possibly with others in between.
bool holds_letters(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t i = 0; i < text.size() && found < part.size(); ++i)
    if (text[i] == part[found]) ++found;
  return found == part.size();
}

// What the template writes for a text, provided that replacing the text changes nothing around it.
std::optional<std::string> written_of(const OwnText& own, const std::string& whole,
                                      const RenderChat& render) {
  const std::string word = stem_not_in(in_lower_case(whole));
  const auto other = try_render(own.with(word), render);
  if (!other) return std::nullopt;
  const std::string lowered = in_lower_case(*other);
  const size_t begin = lowered.find(word);
  if (begin == std::string::npos) return std::nullopt;
  const size_t after = lowered.size() - lowered.rfind(word) - word.size();
  const std::string_view text = *other;
  if (whole.size() < begin + after || !whole.starts_with(text.substr(0, begin)) ||
      !whole.ends_with(text.substr(text.size() - after)))
    return std::nullopt;
  return whole.substr(begin, whole.size() - begin - after);
}

// The places in which a word can be inserted: the beginning, after a mark such as <think> (which
// templates look for), and after white space.
std::vector<size_t> places_in(const std::string& text) {
  constexpr size_t kMostPlaces = 8;
  const size_t first = text.find_first_not_of(kBlanks);
  const size_t mark = text[first] == '<' ? text.find('>', first) : std::string::npos;
  std::vector<size_t> after_blanks;
  for (size_t i = first + 1; i < text.size(); ++i)
    if (kBlanks.find(text[i - 1]) != std::string_view::npos &&
        kBlanks.find(text[i]) == std::string_view::npos)
      after_blanks.push_back(i);
  std::vector<size_t> places{mark == std::string::npos ? first : mark + 1};
  const size_t stride = after_blanks.size() / kMostPlaces + 1;
  for (size_t i = stride / 2; i < after_blanks.size(); i += stride)
    if (after_blanks[i] > places.front()) places.push_back(after_blanks[i]);
  return places;
}

// Inserts words into the text, and returns which part of it is left out, judged by the words that
// have no effect.
const char* extent_by_words(const OwnText& own, const std::string& whole,
                            const RenderChat& render) {
  const std::vector<size_t> places = places_in(own.text);
  const std::string stem = stem_not_in(whole);
  std::string with_all = own.text;
  for (size_t i = places.size(); i-- > 0;)
    with_all.insert(places[i], fmt::format("{}{}q", stem, i));
  const auto all = try_render(own.with(with_all), render);
  const char* extent = "";
  for (size_t i = 0; i < places.size(); ++i) {
    if (all && all->find(fmt::format("{}{}q", stem, i)) != std::string::npos) continue;
    std::string with_one = own.text;
    with_one.insert(places[i], stem);
    if (try_render(own.with(with_one), render) != whole) continue;
    if (i > 0) return kPart;
    extent = kBeginning;
  }
  return extent;
}

// The part of the text that is not written; empty if everything is written, or if that cannot be
// determined.
const char* extent_of_cut(const OwnText& own, const std::string& whole, const RenderChat& render) {
  if (is_blank(own.text) || is_written_as_it_is(own.text, whole)) return "";
  const auto written = written_of(own, whole, render);
  if (!written) return extent_by_words(own, whole, render);
  const std::string said = letters_of(own.text);
  const std::string kept = letters_of(*written);
  if (holds_letters(kept, said)) return "";
  if (!holds_letters(said, kept)) return extent_by_words(own, whole, render);
  return said.ends_with(kept) ? kBeginning : kPart;
}

}  // namespace

void add_cut_texts(const Conversation& conversation, const std::string& whole,
                   const RenderChat& render, std::vector<Unwritten>& found) {
  for (const OwnText& own : texts_of(conversation)) {
    const bool is_known = std::ranges::any_of(found, [&](const Unwritten& one) {
      return one.message == own.message + 1 && one.field == own.field;
    });
    if (is_known) continue;
    const char* extent = extent_of_cut(own, whole, render);
    if (*extent == '\0') continue;
    const Message& message = conversation.messages[own.message];
    found.push_back({.message = own.message + 1,
                     .field = own.field,
                     .role = message.role(),
                     .is_learned = message.is_learned(),
                     .extent = extent});
  }
}

std::string stem_not_in(const std::string& text) {
  std::string stem = "zq";
  while (text.find(stem) != std::string::npos) stem += "xzq";
  return stem;
}

}  // namespace snug::text
