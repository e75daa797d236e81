#include "text/record_form.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json_parser.h"
#include "text/blank.h"

namespace snug::text {
namespace {

using nlohmann::json;

constexpr std::string_view kExpected =
    "expected the fields of one of these forms: instruction and output (alpaca), messages, "
    "conversations (sharegpt), prompt and completion, text, or input_ids (tokens)";

// A parsed record with its place, for complaints.
class Fields {
 public:
  Fields(const RawRecord& raw, const std::string& path) : raw_(raw), path_(path) { parse(); }

  [[noreturn]] void fail(std::string_view message) const {
    throw base::UserError(fmt::format("record {}: {}", raw_.number, message),
                          {path_, raw_.line, 0});
  }

  bool has(const char* key) const { return document_.contains(key); }
  const json& document() const { return document_; }
  const json& at(const char* key) const { return document_.at(key); }

  // The first of `keys` that the record has.
  std::optional<const char*> first_of(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (has(key)) return key;
    return std::nullopt;
  }

  std::string string(const char* key) const {
    const json& value = at(key);
    if (!value.is_string())
      fail(fmt::format("expected the field '{}' to be a string, found {}", key, value.type_name()));
    return value.get<std::string>();
  }

  std::string keys() const {
    std::string list;
    for (const auto& item : document_.items()) list += (list.empty() ? "" : ", ") + item.key();
    return list.empty() ? "none" : list;
  }

 private:
  void parse() {
    document_ = base::parse_json_value(raw_.text, [&](const std::string& problem, size_t offset) {
      const auto* const text = raw_.text.data();
      const auto lines = std::count(text, text + offset, '\n');
      throw base::UserError(fmt::format("broken JSON in record {}: {}", raw_.number, problem),
                            {path_, raw_.line + static_cast<int>(lines), 0});
    });
    if (!document_.is_object())
      fail(fmt::format("expected an object, found {}", document_.type_name()));
  }

  const RawRecord& raw_;
  const std::string& path_;
  json document_;
};

void check_answer(const Fields& fields, const char* key, const std::string& answer) {
  if (is_blank(answer))
    fields.fail(fmt::format("the answer ('{}') is empty; remove the record or fill it in", key));
}

void parse_tokens(const Fields& fields, Record& record) {
  const auto fail = [&](const std::string& what) { fields.fail(what); };
  TokenLists lists = token_lists(fields.document(), fail);
  record.tokens = read_token_lists(lists, std::numeric_limits<size_t>::max(), fail);
}

void parse_alpaca(const Fields& fields, Record& record) {
  const char* output = fields.first_of({"output", "response"}).value();
  const auto input = fields.first_of({"input", "context"});
  const bool has_input = input && !fields.at(*input).is_null();
  record.prompt = alpaca_prompt(fields.string("instruction"),
                                has_input ? fields.string(*input) : std::string());
  record.answer = fields.string(output);
  check_answer(fields, output, record.answer);
}

void parse_completion(const Fields& fields, Record& record) {
  const char* completion = fields.first_of({"completion", "response"}).value();
  record.prompt = fields.string("prompt");
  record.answer = fields.string(completion);
  check_answer(fields, completion, record.answer);
}

Message::Role role_of(const Fields& fields, const std::string& name) {
  if (name == "system") return Message::Role::system;
  if (name == "user" || name == "human") return Message::Role::user;
  if (name == "assistant" || name == "gpt") return Message::Role::assistant;
  fields.fail(
      fmt::format("the role '{}' is not known; expected system, user (human) or assistant "
                  "(gpt)",
                  name));
}

void parse_messages(const Fields& fields, const char* key, Record& record) {
  const bool is_sharegpt = record.form == RecordForm::sharegpt;
  const char* role_key = is_sharegpt ? "from" : "role";
  const char* text_key = is_sharegpt ? "value" : "content";
  if (!fields.at(key).is_array())
    fields.fail(fmt::format("expected the field '{}' to be a list of messages", key));
  bool has_answer = false;
  for (const json& item : fields.at(key)) {
    const size_t number = record.messages.size() + 1;
    for (const char* part : {role_key, text_key})
      if (!item.is_object() || !item.contains(part) || !item[part].is_string())
        fields.fail(fmt::format("message {}: expected the strings '{}' and '{}'", number, role_key,
                                text_key));
    Message message{role_of(fields, item[role_key].get<std::string>()),
                    item[text_key].get<std::string>()};
    if (message.role == Message::Role::assistant) {
      has_answer = true;
      if (is_blank(message.content))
        fields.fail(fmt::format("message {}: the assistant's text is empty", number));
    }
    record.messages.push_back(std::move(message));
  }
  if (!has_answer)
    fields.fail("no message is the assistant's, so there is nothing to learn from it");
}

}  // namespace

std::string_view name_of(RecordForm form) {
  constexpr std::array<std::string_view, 6> kNames = {
      "alpaca", "messages", "sharegpt", "prompt/completion", "text", "tokens"};
  return kNames[static_cast<size_t>(form)];
}

std::optional<RecordForm> form_of(const std::function<bool(const char*)>& has,
                                  std::optional<RecordForm> wanted) {
  const auto may_be = [&](RecordForm form) { return !wanted || *wanted == form; };
  if (may_be(RecordForm::tokens) && has("input_ids")) return RecordForm::tokens;
  if (may_be(RecordForm::messages) && has("messages")) return RecordForm::messages;
  if (may_be(RecordForm::sharegpt) && has("conversations")) return RecordForm::sharegpt;
  if (may_be(RecordForm::alpaca) && has("instruction") && (has("output") || has("response")))
    return RecordForm::alpaca;
  if (may_be(RecordForm::prompt_completion) && has("prompt") &&
      (has("completion") || has("response")))
    return RecordForm::prompt_completion;
  if (may_be(RecordForm::text) && has("text")) return RecordForm::text;
  return std::nullopt;
}

std::string no_form_message(const std::string& keys, std::optional<RecordForm> wanted) {
  if (!wanted) return fmt::format("{}; found: {}", kExpected, keys);
  return fmt::format("expected the fields of the form {}, as data_format says; found: {}",
                     name_of(*wanted), keys);
}

Record parse_record(const RawRecord& raw, const std::string& path,
                    std::optional<RecordForm> wanted) {
  if (raw.is_long)
    throw base::UserError(
        fmt::format("record {} has {} bytes, more than the {} that are read at once", raw.number,
                    raw.end - raw.begin, kMaxRecordBytes),
        {path, raw.line, 0});
  const Fields fields(raw, path);
  const auto form = form_of([&](const char* key) { return fields.has(key); }, wanted);
  if (!form) fields.fail(no_form_message(fields.keys(), wanted));
  Record record;
  record.form = *form;
  record.number = raw.number;
  record.line = raw.line;
  switch (*form) {
    case RecordForm::tokens:
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
