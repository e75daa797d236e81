#include "engine/questions/question.h"

#include <algorithm>
#include <optional>

#include "base/console.h"
#include "base/error.h"
#include "engine/questions/prompt.h"
#include "text/chat/chat_template.h"
#include "text/chat/jinja/allowance.h"
#include "text/chat/unwritten_counts.h"
#include "text/record/asked_record.h"
#include "text/record/record_form.h"
#include "text/record/record_reader.h"
#include "text/record/record_tokens.h"

namespace snug::engine {
namespace {

using text::Record;
using text::RecordForm;

// The text between the headings of an Alpaca prompt.
std::string instruction_of(const std::string& prompt) {
  constexpr std::string_view kBefore = "### Instruction:\n";
  constexpr std::string_view kAfter = "\n\n### Response:\n";
  const size_t begin = prompt.find(kBefore) + kBefore.size();
  return prompt.substr(begin, prompt.rfind(kAfter) - begin);
}

// The conversation without its last message, which is the expected answer.
text::Conversation before_answer(const text::Conversation& whole) {
  const text::Message& answer = whole.messages.back();
  if (!answer.is_assistant())
    base::throw_user_error("the last message is not the assistant's, so no answer is expected");
  if (!answer.is_learned())
    base::throw_user_error(
        "the last message says that it is not to be learned, so it cannot be the answer that is "
        "expected");
  if (answer.content().empty())
    base::throw_user_error("the last message has no text (content), so no answer is expected");
  text::Conversation before = whole;
  before.messages.pop_back();
  return before;
}

// The conversation without an answer at its end, where it has one.
text::Conversation asked_part(const text::Conversation& whole) {
  text::Conversation asked = whole;
  if (asked.messages.back().is_assistant()) asked.messages.pop_back();
  if (asked.messages.empty()) base::throw_user_error("it has an answer alone, and asks nothing");
  return asked;
}

Question question_of_parts(const Record& record, const text::Tokenizer& tokenizer) {
  if (record.form != RecordForm::alpaca && record.form != RecordForm::prompt_completion)
    base::throw_user_error(
        "it is of the form {}, which is not built for encoder-decoders; expected instruction and "
        "output (alpaca), or prompt and completion",
        text::name_of(record.form));
  const bool is_alpaca = record.form == RecordForm::alpaca;
  return {.shown = is_alpaca ? instruction_of(record.prompt) : record.prompt,
          .ids = encoder_prompt(tokenizer, record.prompt),
          .expected = record.answer};
}

bool has_one_answer(const Record& record) {
  return record.form != RecordForm::preference && record.form != RecordForm::unpaired;
}

// The question of a record that is not a conversation.
Question question_of(const Record& record, const text::Tokenizer& tokenizer) {
  switch (record.form) {
    case RecordForm::alpaca:
      return {instruction_of(record.prompt), prompt_before(tokenizer, record.prompt, record.answer),
              record.answer};
    case RecordForm::prompt_completion:
      return {record.prompt, prompt_before(tokenizer, record.prompt, record.answer), record.answer};
    case RecordForm::preference:
      base::throw_user_error(
          "it holds two answers, of which neither is right; expected instruction and output "
          "(alpaca), prompt and completion, or messages");
    case RecordForm::unpaired:
      base::throw_user_error(
          "its answer may be one that is not desirable; leave data_format=unpaired out, and every "
          "answer is taken as right");
    case RecordForm::messages:
    case RecordForm::sharegpt:
    case RecordForm::text:
      break;
    case RecordForm::tokens:
      base::throw_user_error(
          "it holds tokens, which do not say where the question ends; expected instruction and "
          "output (alpaca), prompt and completion, or messages");
  }
  base::throw_user_error(
      "it is plain text without a question; expected instruction and output (alpaca), prompt and "
      "completion, or messages");
}

// Reads a file once. Throws TextsAreChats where a record shows that the file's texts are chats
// after earlier records were read as plain texts.
class QuestionReader {
 public:
  QuestionReader(const QuestionFile& file, const text::Tokenizer& tokenizer,
                 const text::RecordRules& rules)
      : file_(file), tokenizer_(tokenizer), rules_(rules) {}

  std::vector<Question> run(EvaluatedRecords& records) {
    text::RecordReader reader(file_.path);
    text::RawRecord raw;
    for (; wants_more() && reader.next(raw); ++records_.count) {
      if (file_.takes && !file_.takes(raw)) continue;
      try {
        add(reader, raw);
      } catch (const text::RecordError& error) {
        records_.bad.add(error);
      }
    }
    if (const std::string unwritten = unwritten_.text(); !unwritten.empty())
      base::say("{}: {}", file_.path, unwritten);
    records = std::move(records_);
    return std::move(questions_);
  }

 private:
  bool wants_more() const {
    return (file_.most_records == 0 || records_.count < file_.most_records) &&
           (file_.most_questions == 0 || std::ssize(questions_) < file_.most_questions);
  }

  void add(const text::RecordReader& reader, const text::RawRecord& raw) {
    Record record;
    if (reader.format() != text::RecordReader::Format::plain_text)
      record = file_.is_for_rewards ? text::parse_asked_record(raw, file_.path, rules_)
                                    : text::parse_record(raw, file_.path, rules_);
    if (record.chat_field != nullptr && has_texts_) throw text::TextsAreChats{record.chat_field};
    if (record.chat_field != nullptr) rules_.texts_are_chats = true;
    has_texts_ = has_texts_ || !record.is_conversation();
    try {
      questions_.push_back(question(record));
    } catch (const base::UserError& error) {
      throw text::RecordError(raw.number, error.what(), file_.path, raw.line);
    }
    questions_.back().file = file_.path;
    questions_.back().line = raw.line;
    if (file_.is_for_rewards) questions_.back().record = raw.text;
    records_.unused.add(record.unused);
    records_.ignored.add(record.ignored);
  }

  Question question(const Record& record) {
    if (rules_.has_encoder) return question_of_parts(record, tokenizer_);
    if (!has_one_answer(record) || !record.is_conversation())
      return question_of(record, tokenizer_);
    const text::Conversation before =
        file_.is_for_rewards ? asked_part(record.conversation) : before_answer(record.conversation);
    const bool has_answer = before.messages.size() < record.conversation.messages.size();
    if (!chat_) chat_.emplace(file_.chat_template, tokenizer_);
    const text::jinja::Allowance allowance;  // limits everything that is rendered for the record
    unwritten_.add(chat_->unwritten(before, true), record.number);
    return {.shown = before.messages.empty() ? "" : before.messages.back().content(),
            .ids = chat_prompt(tokenizer_, *chat_, before),
            .expected = has_answer ? record.conversation.messages.back().content() : "",
            .is_conversation = true};
  }

  const QuestionFile& file_;
  const text::Tokenizer& tokenizer_;
  text::RecordRules rules_;
  std::vector<Question> questions_;
  bool has_texts_ = false;
  EvaluatedRecords records_;
  std::optional<text::ChatTemplate> chat_;  // opened when a conversation first needs it
  text::UnwrittenCounts unwritten_;
};

}  // namespace

std::vector<Question> questions_in(const QuestionFile& file, const text::Tokenizer& tokenizer,
                                   EvaluatedRecords& records) {
  text::RecordRules rules = file.rules;
  try {
    return QuestionReader(file, tokenizer, rules).run(records);
  } catch (const text::TextsAreChats&) {
    rules.texts_are_chats = true;
    return QuestionReader(file, tokenizer, rules).run(records);
  }
}

}  // namespace snug::engine
