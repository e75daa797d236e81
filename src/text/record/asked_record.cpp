#include "text/record/asked_record.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "text/record/record_error.h"
#include "text/record/record_fields.h"
#include "text/record/record_messages.h"
#include "text/record/record_question.h"
#include "text/record/record_spelling.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

bool has_prompt_and_one_answer(RecordForm form) {
  switch (form) {
    case RecordForm::alpaca:
    case RecordForm::prompt_completion:
    case RecordForm::messages:
    case RecordForm::sharegpt:
      return true;
    case RecordForm::preference:
    case RecordForm::unpaired:
    case RecordForm::text:
    case RecordForm::tokens:
      return false;
  }
  return false;
}

RawRecord with_fields(const RawRecord& raw, std::string text) {
  RawRecord result;
  result.number = raw.number;
  result.line = raw.line;
  result.text = std::move(text);
  return result;
}

// Reads the prompt of one record.
class PromptFields {
 public:
  PromptFields(const RecordFields& fields, const RecordRules& rules)
      : fields_(fields), rules_(rules), question_(question_fields(fields)) {
    for (const char* key : {"messages", "conversations"})
      if (messages_ == nullptr && fields_.holds(key)) messages_ = key;
    if (messages_ == nullptr && question_.text != nullptr && holds_messages(question_.text))
      messages_ = question_.text;
  }

  bool asks() const { return messages_ != nullptr || question_.text != nullptr; }

  void read(Record& record) const {
    if (messages_ != nullptr)
      read_messages(record);
    else
      read_text(record);
  }

 private:
  bool holds_messages(const char* key) const {
    const nlohmann::json& value = fields_.document().at(key);
    return value.is_structured();
  }

  void read_messages(Record& record) const {
    if (rules_.has_encoder)
      fields_.fail(fmt::format(
          "'{}' holds messages, and conversations are not built for encoder-decoders", messages_));
    record.form = RecordForm::messages;
    Conversation& conversation = record.conversation;
    add_messages(fields_, messages_, conversation, false);
    if (conversation.messages.empty())
      fields_.fail(fmt::format("'{}' has no message", messages_), Fault::size);
    if (messages_ == question_.text && conversation.messages.back().is_assistant())
      fields_.fail(
          fmt::format("the last message of '{}' is the assistant's, and a prompt ends with "
                      "what is asked; leave that message out",
                      messages_));
    add_setting(fields_, conversation);
  }

  void read_text(Record& record) const {
    const bool is_instruction = question_.text == std::string_view("instruction");
    record.form = is_instruction ? RecordForm::alpaca : RecordForm::prompt_completion;
    std::string prompt = question_text(fields_, question_);
    if (is_blank(fields_.string(question_.text)))
      fields_.fail(fmt::format("the prompt ('{}') is empty", question_.text), Fault::size);
    const auto chat_field = conversation_field(fields_, question_, rules_);
    if (!chat_field && !rules_.texts_are_chats) {
      record.prompt = std::move(prompt);
      return;
    }
    record.chat_field = chat_field.value_or(nullptr);
    add_question(fields_, question_, record.conversation);
    add_setting(fields_, record.conversation);
  }

  const RecordFields& fields_;
  const RecordRules& rules_;
  QuestionFields question_;
  const char* messages_ = nullptr;  // the field that holds them; null: none does
};

// The record, whose fields have Snug's names, without an answer; nothing where it asks nothing.
std::optional<Record> prompt_of(const RawRecord& raw, const std::string& path,
                                const RecordRules& rules) {
  const RecordFields fields(raw, path, rules.ignored, rules.mapping);
  if (auto lists = with_messages_of_texts(fields, raw.text))
    return prompt_of(with_fields(raw, *std::move(lists)), path, rules);
  const PromptFields prompt(fields, rules);
  if (!prompt.asks()) return std::nullopt;
  Record record;
  record.number = raw.number;
  record.line = raw.line;
  prompt.read(record);
  if (rules.texts_are_chats) record.chat_field = nullptr;  // all are, whatever their fields
  record.unused = fields.unused();
  record.ignored = fields.ignored();
  return record;
}

RawRecord with_named_fields(const RawRecord& raw, const std::string& path,
                            const RecordMapping* mapping) {
  if (mapping == nullptr) return with_fields(raw, raw.text);
  return with_fields(raw, mapping->rewritten(raw.text, [&](const std::string& what) {
    throw RecordError(raw.number, what, path, raw.line);
  }));
}

}  // namespace

Record parse_asked_record(const RawRecord& raw, const std::string& path, const RecordRules& rules) {
  const bool is_readable = raw.problem.empty() && !raw.is_long;
  try {
    Record record = parse_record(raw, path, rules);
    if (has_prompt_and_one_answer(record.form)) return record;
    auto alone = prompt_of(with_named_fields(raw, path, rules.mapping), path, rules);
    return alone ? *std::move(alone) : std::move(record);
  } catch (const RecordError&) {
    if (!is_readable) throw;
    auto alone = prompt_of(with_named_fields(raw, path, rules.mapping), path, rules);
    if (!alone) throw;
    return *std::move(alone);
  }
}

}  // namespace snug::text
