#include "text/record_form.h"

#include <limits>
#include <optional>

#include "base/error.h"
#include "text/compared_records.h"
#include "text/record_fields.h"
#include "text/record_messages.h"

namespace snug::text {
namespace {

constexpr std::string_view kExpected =
    "expected the fields of one of these forms: instruction and output (alpaca), messages, "
    "conversations (sharegpt), prompt and completion, input and target, chosen and rejected "
    "(preference), text, or "
    "input_ids (tokens)";

void parse_tokens(const RecordFields& fields, Record& record) {
  const auto fail = [&](const std::string& what) { fields.fail(what); };
  TokenLists lists = token_lists(fields.document(), fail);
  record.tokens = read_token_lists(lists, std::numeric_limits<size_t>::max(), fail);
}

void parse_token_pair(const RecordFields& fields, Record& record) {
  const auto fail = [&](const std::string& what) { fields.fail(what); };
  TokenLists lists = token_lists(fields.document(), fail);
  TokenPair pair = read_token_pair(lists, fail);
  record.tokens = std::move(pair.encoder);
  record.labels = std::move(pair.labels);
}

void parse_alpaca(const RecordFields& fields, Record& record) {
  const char* output = fields.first_of({"output", "response"}).value();
  const auto input = fields.first_of({"input", "context"});
  const bool has_input = input && !fields.at(*input).is_null();
  record.prompt = alpaca_prompt(fields.string("instruction"),
                                has_input ? fields.string(*input) : std::string());
  record.answer = fields.string(output);
  fields.check_answer(output, record.answer);
}

bool has_prompt_and_completion(const std::function<bool(const char*)>& has) {
  return has("prompt") && (has("completion") || has("response"));
}

void parse_completion(const RecordFields& fields, Record& record) {
  const bool is_named_so =
      has_prompt_and_completion([&](const char* key) { return fields.has(key); });
  const char* completion =
      is_named_so ? fields.first_of({"completion", "response"}).value() : "target";
  record.prompt = fields.string(is_named_so ? "prompt" : "input");
  record.answer = fields.string(completion);
  fields.check_answer(completion, record.answer);
}

}  // namespace

std::optional<RecordForm> form_of(const std::function<bool(const char*)>& has,
                                  std::optional<RecordForm> wanted) {
  const auto may_be = [&](RecordForm form) { return !wanted || *wanted == form; };
  // Only where it is asked for: a label next to an answer may be of anything.
  if (wanted == RecordForm::unpaired) {
    if (has("chosen") && has("rejected")) return RecordForm::preference;
    if (has("prompt") || has("completion") || has("label")) return RecordForm::unpaired;
  }
  if (may_be(RecordForm::tokens) && has("input_ids")) return RecordForm::tokens;
  if (may_be(RecordForm::messages) && has("messages")) return RecordForm::messages;
  if (may_be(RecordForm::sharegpt) && has("conversations")) return RecordForm::sharegpt;
  if (may_be(RecordForm::alpaca) && has("instruction") && (has("output") || has("response")))
    return RecordForm::alpaca;
  if (may_be(RecordForm::prompt_completion) &&
      (has_prompt_and_completion(has) || (has("input") && has("target"))))
    return RecordForm::prompt_completion;
  if (may_be(RecordForm::preference) && has("chosen") && has("rejected"))
    return RecordForm::preference;
  if (may_be(RecordForm::text) && has("text")) return RecordForm::text;
  return std::nullopt;
}

std::string no_form_message(const std::string& keys, std::optional<RecordForm> wanted) {
  if (!wanted) return fmt::format("{}; found: {}", kExpected, keys);
  if (*wanted == RecordForm::preference)
    return fmt::format(
        "expected the fields chosen and rejected, and where there is one prompt: pairs of answers, "
        "which objective=dpo and orpo learn from; found: {}",
        keys);
  if (*wanted == RecordForm::unpaired)
    return fmt::format(
        "expected the fields prompt, completion and label, or pairs of answers (chosen and "
        "rejected), which objective=kto learns from; found: {}",
        keys);
  return fmt::format("expected the fields of the form {}, as data_format says; found: {}",
                     name_of(*wanted), keys);
}

Record parse_record(const RawRecord& raw, const std::string& path, std::optional<RecordForm> wanted,
                    bool has_encoder) {
  if (raw.is_long)
    throw base::UserError(
        fmt::format("record {} has {} bytes, more than the {} that are read at once", raw.number,
                    raw.end - raw.begin, kMaxRecordBytes),
        {path, raw.line, 0});
  const RecordFields fields(raw, path);
  const auto form = form_of([&](const char* key) { return fields.has(key); }, wanted);
  if (!form) fields.fail(no_form_message(fields.keys(), wanted));
  Record record;
  record.form = *form;
  record.number = raw.number;
  record.line = raw.line;
  switch (*form) {
    case RecordForm::tokens:
      if (has_encoder)
        parse_token_pair(fields, record);
      else
        parse_tokens(fields, record);
      break;
    case RecordForm::messages:
      parse_messages(fields, "messages", record);
      break;
    case RecordForm::sharegpt:
      parse_messages(fields, "conversations", record);
      break;
    case RecordForm::alpaca:
      parse_alpaca(fields, record);
      break;
    case RecordForm::prompt_completion:
      parse_completion(fields, record);
      break;
    case RecordForm::preference:
      parse_preference(fields, record);
      break;
    case RecordForm::unpaired:
      parse_unpaired(fields, record);
      break;
    case RecordForm::text:
      record.answer = fields.string("text");
      break;
  }
  return record;
}

std::string alpaca_prompt(std::string_view instruction, std::string_view input) {
  if (input.empty())
    return fmt::format(
        "Below is an instruction that describes a task. Write a response that appropriately "
        "completes the request.\n\n### Instruction:\n{}\n\n### Response:\n",
        instruction);
  return fmt::format(
      "Below is an instruction that describes a task, paired with an input that provides further "
      "context. Write a response that appropriately completes the request.\n\n### "
      "Instruction:\n{}\n\n### Input:\n{}\n\n### Response:\n",
      instruction, input);
}

}  // namespace snug::text
