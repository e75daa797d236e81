#include "generate/questions.h"

#include "base/console.h"
#include "base/error.h"
#include "generate/prompt.h"
#include "plan/spec.h"
#include "text/bad_records.h"
#include "text/record_form.h"
#include "text/record_reader.h"
#include "text/record_tokens.h"
#include "text/unused_fields.h"

namespace snug::generate {
namespace {

using text::Record;
using text::RecordForm;

// What stands between the headings of an Alpaca prompt.
std::string instruction_of(const std::string& prompt) {
  constexpr std::string_view kBefore = "### Instruction:\n";
  constexpr std::string_view kAfter = "\n\n### Response:\n";
  const size_t begin = prompt.find(kBefore) + kBefore.size();
  return prompt.substr(begin, prompt.rfind(kAfter) - begin);
}

Question conversation(const Record& record, const formats::Recipe& recipe,
                      const text::Tokenizer& tokenizer) {
  text::Conversation before = record.conversation;
  const text::Message answer = before.messages.back();
  if (!answer.is_assistant())
    base::throw_user_error("the last message is not the assistant's, so no answer is expected");
  if (!answer.is_learned())
    base::throw_user_error(
        "the last message says that it is not to be learned, so it cannot be the answer that is "
        "expected");
  if (answer.content().empty())
    base::throw_user_error("the last message has no text (content), so no answer is expected");
  before.messages.pop_back();
  return {.shown = before.messages.empty() ? "" : before.messages.back().content(),
          .ids = chat_prompt(tokenizer, recipe.chat_template, before),
          .expected = answer.content(),
          .is_conversation = true};
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

Question question_of(const Record& record, const formats::Recipe& recipe,
                     const text::Tokenizer& tokenizer, bool has_encoder) {
  if (has_encoder) return question_of_parts(record, tokenizer);
  const bool has_one_answer =
      record.form != RecordForm::preference && record.form != RecordForm::unpaired;
  if (has_one_answer && record.is_conversation()) return conversation(record, recipe, tokenizer);
  switch (record.form) {
    case RecordForm::alpaca:
      return {instruction_of(record.prompt), prompt_before(tokenizer, record.prompt, record.answer),
              record.answer};
    case RecordForm::prompt_completion:
      return {record.prompt, prompt_before(tokenizer, record.prompt, record.answer), record.answer};
    case RecordForm::messages:
    case RecordForm::sharegpt:
      return conversation(record, recipe, tokenizer);
    case RecordForm::preference:
      base::throw_user_error(
          "it holds two answers, of which neither is right; expected instruction and output "
          "(alpaca), prompt and completion, or messages");
    case RecordForm::unpaired:
      base::throw_user_error(
          "its answer may be one that is not desirable; leave data_format=unpaired out, and every "
          "answer is taken as right");
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

// Reads the file once; throws TextsAreChats where only some of its records of texts are.
class QuestionReader {
 public:
  QuestionReader(const formats::Recipe& recipe, const text::Tokenizer& tokenizer,
                 const text::RecordRules& rules)
      : recipe_(recipe), tokenizer_(tokenizer), rules_(rules) {}

  std::vector<Question> run() {
    text::RecordReader reader(recipe_.data);
    int64_t records = 0;
    for (text::RawRecord raw; reader.next(raw); ++records) {
      try {
        add(reader, raw);
      } catch (const text::RecordError& error) {
        bad_.add(error);
      }
    }
    if (bad_.count() > 0 && recipe_.on_bad_record == formats::OnBadRecord::error)
      bad_.fail(recipe_.data, records);
    if (questions_.empty() && bad_.count() == 0)
      throw base::UserError("the data file holds no records", {recipe_.data, 0, 0});
    if (questions_.empty())
      throw base::UserError(
          fmt::format("none of the {} records can be asked\n{}", records, bad_.list()),
          {recipe_.data, 0, 0});
    tell();
    return std::move(questions_);
  }

 private:
  void add(const text::RecordReader& reader, const text::RawRecord& raw) {
    Record record;
    if (reader.format() != text::RecordReader::Format::plain_text)
      record = text::parse_record(raw, recipe_.data, rules_);
    if (record.chat_field != nullptr && has_texts_) throw text::TextsAreChats{record.chat_field};
    if (record.chat_field != nullptr) rules_.texts_are_chats = true;
    has_texts_ = has_texts_ || !record.is_conversation();
    try {
      questions_.push_back(question_of(record, recipe_, tokenizer_, rules_.has_encoder));
    } catch (const base::UserError& error) {
      throw text::RecordError(raw.number, error.what(), recipe_.data, raw.line);
    }
    questions_.back().line = raw.line;
    unused_.add(record.unused);
  }

  void tell() const {
    if (const std::string fields = unused_.list(); !fields.empty())
      base::say("{}: fields that are not used: {}", recipe_.data, fields);
    if (bad_.count() > 0)
      base::say("{}: {} records left out (on_bad_record=skip):\n{}", recipe_.data, bad_.count(),
                bad_.list());
  }

  const formats::Recipe& recipe_;
  const text::Tokenizer& tokenizer_;
  text::RecordRules rules_;
  std::vector<Question> questions_;
  bool has_texts_ = false;
  text::BadRecords bad_;
  text::UnusedFields unused_;
};

}  // namespace

std::vector<Question> read_questions(const formats::Recipe& recipe,
                                     const text::Tokenizer& tokenizer, bool has_encoder) {
  text::RecordRules rules{.form = plan::record_form(recipe.data_format),
                          .has_encoder = has_encoder,
                          .ignored = recipe.ignore_fields};
  try {
    return QuestionReader(recipe, tokenizer, rules).run();
  } catch (const text::TextsAreChats&) {
    rules.texts_are_chats = true;
    return QuestionReader(recipe, tokenizer, rules).run();
  }
}

}  // namespace snug::generate
