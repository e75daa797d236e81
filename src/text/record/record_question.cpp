#include "text/record/record_question.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "text/record/record_messages.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using Kind = jinja::Value::Kind;

constexpr const char* kHistory = "history";
constexpr const char* kTools = "tools";

// Whether there is something that may be called: a list that is not empty, also as text.
bool says_tools(const RecordFields& fields) {
  if (!fields.holds(kTools)) return false;
  const nlohmann::json& tools = fields.document().at(kTools);
  if (!tools.is_string()) return !tools.empty();
  return tools.get_ref<const std::string&>().find_first_not_of(" \t\r\n[]{}") != std::string::npos;
}

// A question is learned where its role is.
void add_asked(std::string text, Conversation& conversation) {
  conversation.messages.emplace_back("user", std::move(text));
  conversation.messages.back().set_learned(true);
}

// A question and its answer.
void add_turn(const RecordFields& fields, const jinja::Value& turn, Conversation& conversation) {
  const bool is_pair = turn.is(Kind::list) && turn.items().size() == 2 &&
                       turn.items()[0].is(Kind::text) && turn.items()[1].is(Kind::text);
  if (!is_pair)
    fields.fail("expected the field 'history' to be a list of [question, answer], or of messages");
  add_asked(turn.items()[0].as_text(), conversation);
  conversation.messages.emplace_back("assistant", turn.items()[1].as_text());
}

}  // namespace

QuestionFields instruction_fields(const RecordFields& fields) {
  constexpr auto kInputs = std::to_array<const char*>({"input", "context"});
  return {"instruction", fields.first_held(kInputs).value_or(nullptr)};
}

QuestionFields question_fields(const RecordFields& fields) {
  constexpr auto kPrompts = std::to_array<const char*>({"prompt", "question", "query"});
  if (const auto prompt = fields.first_held(kPrompts)) return {*prompt};
  return fields.holds("instruction") ? instruction_fields(fields) : QuestionFields{};
}

std::string question_text(const RecordFields& fields, const QuestionFields& question) {
  const std::string text = fields.string(question.text);
  const std::string input = question.input != nullptr ? fields.string(question.input) : "";
  if (question.text == std::string_view("instruction")) return alpaca_prompt(text, input);
  return input.empty() ? text : text + "\n" + input;
}

std::optional<const char*> conversation_field(const RecordFields& fields,
                                              const QuestionFields& question,
                                              const RecordRules& rules) {
  const auto check = [&](const char* key) {
    if (rules.has_encoder)
      fields.fail(
          fmt::format("the field '{0}' makes a conversation of it, which is not built for "
                      "encoder-decoders; ignore_fields={0} reads the records without it",
                      key));
    return key;
  };
  // Only looked at: what uses them is the conversation.
  const nlohmann::json& document = fields.document();
  for (const char* key : kSystemFields) {
    const bool is_empty =
        !fields.holds(key) ||
        (document.at(key).is_string() && is_blank(document.at(key).get_ref<const std::string&>()));
    if (!is_empty) return check(key);
  }
  if (says_tools(fields)) return check(kTools);
  if (fields.holds(kHistory) && !document.at(kHistory).empty()) return check(kHistory);
  const std::string_view text = question.text == nullptr ? "" : question.text;
  const bool is_asked = text == "question" || text == "query";
  return is_asked && !rules.has_encoder ? std::optional(question.text) : std::nullopt;
}

void add_history(const RecordFields& fields, Conversation& conversation) {
  if (!fields.holds(kHistory)) return;
  const jinja::Value& history = fields.value_of(kHistory);
  if (!history.is(Kind::list)) fields.fail("expected the field 'history' to be a list");
  const jinja::List& turns = history.items();
  if (!turns.empty() && turns[0].is(Kind::dict))
    return add_messages(fields, kHistory, conversation);
  for (const jinja::Value& turn : turns) add_turn(fields, turn, conversation);
}

void add_question(const RecordFields& fields, const QuestionFields& question,
                  Conversation& conversation) {
  add_history(fields, conversation);
  std::string text = fields.string(question.text);
  const std::string input = question.input != nullptr ? fields.string(question.input) : "";
  if (!input.empty()) text += (text.empty() ? "" : "\n") + input;
  add_asked(std::move(text), conversation);
}

}  // namespace snug::text
