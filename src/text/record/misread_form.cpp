#include "text/record/misread_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "text/record/field_meaning.h"
#include "text/record/message_role.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

bool has_any_word(std::string_view name, std::span<const std::string_view> wanted) {
  return std::ranges::any_of(words_of(name), [&](const std::string& word) {
    return std::ranges::find(wanted, word) != wanted.end();
  });
}

// Whether a field of this name says who says something.
bool is_named_as_role(std::string_view field) {
  constexpr auto kSpeakers = std::to_array<std::string_view>({"from", "speaker", "sender"});
  constexpr auto kRole = std::to_array<std::string_view>({"role"});
  return std::ranges::find(kSpeakers, field) != kSpeakers.end() || has_any_word(field, kRole);
}

// A name, a letter or a number of an answer, not what somebody wrote about it.
bool points_at_answer(std::string_view field, const nlohmann::json& value) {
  constexpr size_t kLongestPointer = 24;
  constexpr auto kDescriptions = std::to_array<std::string_view>(
      {"source", "model", "type", "language", "reason", "statement", "annotator", "author", "by"});
  if (value.is_array())
    return !value.empty() && std::ranges::all_of(value, [](const auto& item) {
      return item.is_number() || item.is_boolean();
    });
  if (!value.is_string()) return value.is_number() || value.is_boolean();
  const auto& text = value.get_ref<const std::string&>();
  return !is_blank(text) && text.size() <= kLongestPointer && !has_any_word(field, kDescriptions);
}

}  // namespace

std::string why_no_text(std::string_view field, const nlohmann::json& value) {
  if (!value.is_string() || !is_named_as_role(field)) return "";
  const auto& role = value.get_ref<const std::string&>();
  if (!known_role(role)) return "";
  return fmt::format(
      "the field '{0}' is '{1}', so the text is one message of a conversation, which would be "
      "learned by itself, whoever says it; give each conversation as a record, {{\"messages\": "
      "[{{\"role\": \"user\", \"content\": ...}}, ...]}}, or ignore_fields={0} learns each message "
      "as a text",
      field, role);
}

std::string why_no_choice(std::string_view field, const nlohmann::json& value,
                          std::string_view answer) {
  constexpr auto kChoices = std::to_array<std::string_view>(
      {"choices", "options", "answer_choices", "answer_options", "endings"});
  const bool is_letter = answer.size() <= 3 && answer.find(' ') == std::string_view::npos;
  if (!is_letter || std::ranges::find(kChoices, field) == kChoices.end()) return "";
  if (!value.is_structured() || value.size() < 2) return "";
  const bool has_texts = value.is_object() && value.contains("text");
  const nlohmann::json& texts = has_texts ? value.at("text") : value;
  if (std::ranges::any_of(texts, [&](const auto& text) { return text == answer; })) return "";
  std::string path(field);
  if (value.is_object()) path += "." + (has_texts ? "text" : value.begin().key());
  if (value.is_array() || has_texts) path += ".0";
  return fmt::format(
      "the field '{0}' holds the answers to choose from, which the model would not see, and '{1}' "
      "is only the name of one; write them into the prompt, fields={{question: \"{{question}}\\nA. "
      "{{{2}}}\\n...\", answer: NAME}}, or ignore_fields={0} reads the records without them",
      field, answer, path);
}

bool orders_answers(const RecordMapping& mapping) {
  constexpr auto kOrdered = std::to_array<std::string_view>(
      {"chosen",   "accepted",     "preferred", "better",   "best",  "winner",
       "winning",  "win",          "good",      "positive", "pos",   "rejected",
       "unchosen", "dispreferred", "worse",     "worst",    "loser", "losing",
       "lose",     "bad",          "negative",  "neg"});
  bool takes_any = false;
  for (const char* name : {"chosen", "rejected", "rejected_response"}) {
    const std::string* taken = mapping.taken_for(name);
    if (taken == nullptr) continue;
    if (has_any_word(*taken, kOrdered)) return false;
    takes_any = true;
  }
  return takes_any;
}

bool is_named_as_order(std::string_view field) {
  constexpr auto kOrders = std::to_array<std::string_view>(
      {"better",  "best", "safer",   "prefer", "preferred", "preference", "preferences", "winner",
       "winning", "wins", "win",     "chosen", "choice",    "selected",   "selection",   "label",
       "labels",  "gold", "verdict", "vote",   "judgment",  "judgement",  "ranking"});
  constexpr auto kDegrees = std::to_array<std::string_view>(
      {"score", "scores", "rating", "ratings", "reward", "rewards", "logps", "logprobs", "tokens"});
  return has_any_word(field, kOrders) && !has_any_word(field, kDegrees);
}

std::string why_no_order(std::string_view field, const nlohmann::json& value,
                         const RecordMapping& mapping) {
  if (!is_named_as_order(field) || !points_at_answer(field, value)) return "";
  const bool has_chosen = mapping.taken_for("chosen") != nullptr;
  const std::string* rejected = mapping.taken_for("rejected");
  if (rejected == nullptr) rejected = mapping.taken_for("rejected_response");
  return fmt::format(
      "the field '{0}' ({1}) says which answer is better, and fields cannot follow it: '{2}' is "
      "always '{3}'; give records whose 'chosen' is the better answer, or ignore_fields={0} where "
      "that is so in all of them",
      field, value.dump(), has_chosen ? "chosen" : "rejected",
      has_chosen ? *mapping.taken_for("chosen") : *rejected);
}

}  // namespace snug::text
