#include "text/record/answered_records.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/lower_case.h"
#include "text/record/record_messages.h"

namespace snug::text {
namespace {

bool is_messages(const nlohmann::json& value) {
  return value.is_object() || (value.is_array() && (value.empty() || value[0].is_object()));
}

// Adds the answer after the messages of the prompt, which may stand at its beginning once more.
void add_completion(const RecordFields& fields, const char* answer, Conversation& conversation) {
  if (is_messages(fields.at(answer)))
    add_messages_after_prompt(fields, answer, conversation);
  else
    conversation.messages.emplace_back("assistant", fields.string(answer));
}

void parse_message_lists(const RecordFields& fields, const QuestionFields& question,
                         const char* answer, const RecordRules& rules, Record& record) {
  const char* prompt = question.text;
  if (rules.has_encoder)
    fields.fail(
        fmt::format("'{}' and '{}' hold messages, and conversations are not built for "
                    "encoder-decoders; give two strings",
                    prompt, answer));
  Conversation& conversation = record.conversation;
  if (is_messages(fields.at(prompt)))
    add_messages(fields, prompt, conversation, false);
  else
    add_question(fields, question, conversation);
  record.prompt_messages = conversation.messages.size();
  add_completion(fields, answer, conversation);
  if (record.prompt_messages == 0 || record.prompt_messages == conversation.messages.size())
    fields.fail(fmt::format("'{}' and '{}' must each have a message", prompt, answer));
  const size_t added = add_setting(fields, conversation);
  record.prompt_messages += added;
  settle_learning(fields, rules.learning, conversation, added);
}

}  // namespace

void parse_answer(const RecordFields& fields, const QuestionFields& question, const char* answer,
                  const RecordRules& rules, Record& record) {
  if (is_messages(fields.at(question.text)) || is_messages(fields.at(answer)))
    return parse_message_lists(fields, question, answer, rules, record);
  const auto chat_field = conversation_field(fields, question, rules);
  const std::string prompt = question_text(fields, question);
  std::string text = fields.string(answer);
  fields.check_answer(answer, text);
  if (!chat_field && !rules.texts_are_chats) {
    record.prompt = prompt;
    record.answer = std::move(text);
    return;
  }
  record.chat_field = chat_field.value_or(nullptr);
  Conversation& conversation = record.conversation;
  add_question(fields, question, conversation);
  conversation.messages.emplace_back("assistant", std::move(text));
  const size_t added = add_setting(fields, conversation);
  settle_learning(fields, rules.learning, conversation, added);
  record.prompt_messages = conversation.messages.size() - 1;
}

const char* alpaca_answer(const HasField& has) {
  for (const char* key : {"output", "response", "answer"})
    if (has(key)) return key;
  return nullptr;
}

std::optional<CompletionFields> completion_fields(const HasField& has) {
  // What an input next to a prompt, and its output, have to do with the prompt is not known.
  const bool has_both = has("prompt") && has("input");
  const auto pair = [&](const char* prompt, std::initializer_list<const char*> answers) {
    std::optional<CompletionFields> found;
    if (!has(prompt)) return found;
    for (const char* answer : answers)
      if (!found && has(answer)) found = {prompt, answer};
    return found;
  };
  if (const auto found = pair("prompt", {"completion", "response", "answer"})) return found;
  if (const auto found = has_both ? std::nullopt : pair("prompt", {"output"})) return found;
  if (const auto found = pair("input", {"target"})) return found;
  if (const auto found = pair("query", {"response", "answer", "completion"})) return found;
  if (const auto found = pair("question", {"response", "answer", "completion"})) return found;
  return has_both ? std::nullopt : pair("input", {"output", "response"});
}

void parse_alpaca(const RecordFields& fields, const RecordRules& rules, Record& record) {
  const auto has = [&](const char* key) { return fields.has(key) && fields.is_meant(key); };
  parse_answer(fields, instruction_fields(fields), alpaca_answer(has), rules, record);
}

void parse_completion(const RecordFields& fields, const RecordRules& rules, Record& record) {
  const auto found =
      completion_fields([&](const char* key) { return fields.has(key) && fields.is_meant(key); });
  SNUG_CHECK(found.has_value(), "no prompt and answer in a record of {}", fields.keys());
  QuestionFields question{found->prompt};
  // A question may be about a text next to it.
  const std::string_view prompt = found->prompt;
  if ((prompt == "question" || prompt == "query") && fields.holds("context") &&
      fields.document().at("context").is_string())
    question.input = "context";
  parse_answer(fields, question, found->answer, rules, record);
}

std::optional<bool> label_of(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value == 0 || value == 1) return value == 1;
  if (!value.is_string()) return std::nullopt;
  const std::string word = base::lower_case(value.get<std::string>());
  if (word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  return std::nullopt;
}

void check_label(const RecordFields& fields) {
  for (const char* key : {"label", "kto_tag"}) {
    if (!fields.has(key) || fields.document().at(key).is_number()) continue;  // perhaps of a class
    const std::optional<bool> label = label_of(fields.document().at(key));
    if (label) fields.use(key);
    if (label == false)
      fields.fail(
          fmt::format("'{0}' is false: its answer is not desirable, and would be learned all the "
                      "same; objective=kto learns from labels, ignore_fields={0} learns all "
                      "answers",
                      key));
  }
}

}  // namespace snug::text
