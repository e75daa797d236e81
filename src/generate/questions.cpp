#include "generate/questions.h"

#include "base/error.h"
#include "generate/prompt.h"
#include "plan/spec.h"
#include "text/record_form.h"
#include "text/record_reader.h"

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

}  // namespace

std::vector<Question> read_questions(const formats::Recipe& recipe,
                                     const text::Tokenizer& tokenizer, bool has_encoder) {
  text::RecordReader reader(recipe.data);
  std::vector<Question> questions;
  for (text::RawRecord raw; reader.next(raw);) {
    Record record;
    if (reader.format() != text::RecordReader::Format::plain_text)
      record =
          text::parse_record(raw, recipe.data, plan::record_form(recipe.data_format), has_encoder);
    try {
      questions.push_back(question_of(record, recipe, tokenizer, has_encoder));
    } catch (const base::UserError& error) {
      throw base::UserError(fmt::format("record {}: {}", raw.number, error.what()),
                            {recipe.data, raw.line, 0});
    }
    questions.back().line = raw.line;
  }
  if (questions.empty())
    throw base::UserError("the data file holds no records", {recipe.data, 0, 0});
  return questions;
}

}  // namespace snug::generate
