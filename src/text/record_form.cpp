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
#include "text/jinja/json_values.h"
#include "text/jinja/limits.h"

namespace snug::text {
namespace {

using nlohmann::json;

constexpr std::string_view kExpected =
    "expected the fields of one of these forms: instruction and output (alpaca), messages, "
    "conversations (sharegpt), prompt and completion, chosen and rejected (preference), text, or "
    "input_ids (tokens)";

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

  // The record with its keys in their order, and with numbers as they are written.
  const jinja::Value& value() const {
    try {
      if (value_.is(jinja::Value::Kind::undefined)) value_ = jinja::value_of_json(raw_.text);
    } catch (const jinja::TemplateError& error) {
      fail(error.what());
    }
    return value_;
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
  mutable jinja::Value value_;  // once it is asked for
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

std::string role_of(const Fields& fields, const std::string& name) {
  constexpr std::array<std::string_view, 8> kRoles{
      "system", "developer", "user", "assistant", "tool", "ipython", "function", "tool_results"};
  if (name == "human") return "user";
  if (name == "gpt") return "assistant";
  if (std::find(kRoles.begin(), kRoles.end(), name) == kRoles.end())
    fields.fail(fmt::format("the role '{}' is not known; expected {}, human or gpt", name,
                            fmt::join(kRoles, ", ")));
  return name;
}

// A message of the form sharegpt has these two fields, one of messages any that its template reads.
Message read_message(const Fields& fields, const jinja::Value& item, size_t number,
                     bool is_sharegpt) {
  const char* role_key = is_sharegpt ? "from" : "role";
  const char* text_key = is_sharegpt ? "value" : "content";
  const auto find = [&](std::string_view key) -> const jinja::Value* {
    return item.is(jinja::Value::Kind::dict) ? item.as_dict().find(key) : nullptr;
  };
  const jinja::Value* role = find(role_key);
  const jinja::Value* text = find(text_key);
  const bool has_text = text != nullptr && text->is(jinja::Value::Kind::text);
  if (role == nullptr || !role->is(jinja::Value::Kind::text) || (is_sharegpt && !has_text))
    fields.fail(
        fmt::format("message {}: expected the strings '{}' and '{}'", number, role_key, text_key));
  const std::string name = role_of(fields, role->as_text());
  if (is_sharegpt) return {name, text->as_text()};
  // A content that is null is left out, as transformers does; one that is not there at all is a
  // mistake, unless calls stand in its place.
  if (text == nullptr && find("tool_calls") == nullptr)
    fields.fail(
        fmt::format("message {}: expected the strings '{}' and '{}'", number, role_key, text_key));
  jinja::Dict entries = item.as_dict();
  entries.set(jinja::Value::text("role"), jinja::Value::text(name));
  return Message(jinja::Value::dict(std::move(entries)));
}

// Whether a message says nothing: no text, no parts, no call, no thought.
bool is_empty(const Message& message) {
  for (const char* key : {"content", "tool_calls", "reasoning_content"}) {
    const jinja::Value* value = message.fields().as_dict().find(std::string_view(key));
    if (value == nullptr) continue;
    if (value->is(jinja::Value::Kind::text) ? !is_blank(value->as_text()) : value->is_true())
      return false;
  }
  return true;
}

jinja::Value value_of_text(const Fields& fields, const std::string& text) {
  base::parse_json_value(text, [&](const std::string& problem, size_t) {
    fields.fail(fmt::format("the field 'tools' is text that is not JSON: {}", problem));
  });
  try {
    return jinja::value_of_json(text);
  } catch (const jinja::TemplateError& error) {
    fields.fail(error.what());
  }
}

// What the assistant may call, as a list of dictionaries; data sets hold it as JSON text, too.
jinja::Value read_tools(const Fields& fields) {
  if (!fields.has("tools") || fields.at("tools").is_null()) return jinja::Value::none();
  std::string text = fields.at("tools").is_string() ? fields.string("tools") : "";
  const jinja::Value tools = text.empty()
                                 ? *fields.value().as_dict().find(std::string_view("tools"))
                                 : value_of_text(fields, text);
  const bool is_list = tools.is(jinja::Value::Kind::list);
  if (!is_list || !std::all_of(tools.items().begin(), tools.items().end(),
                               [](const auto& tool) { return tool.is(jinja::Value::Kind::dict); }))
    fields.fail("expected the field 'tools' to be a list of objects");
  return tools;
}

void read_variables(const Fields& fields, Conversation& conversation) {
  constexpr std::string_view kKey = "chat_template_kwargs";
  const jinja::Value* values = fields.value().as_dict().find(kKey);
  if (values == nullptr || values->is(jinja::Value::Kind::none)) return;
  if (!values->is(jinja::Value::Kind::dict))
    fields.fail(fmt::format("expected the field '{}' to be an object", kKey));
  for (const auto& [key, value] : values->as_dict().entries())
    conversation.variables.emplace_back(key.as_text(), value);
}

void parse_messages(const Fields& fields, const char* key, Record& record) {
  if (!fields.at(key).is_array())
    fields.fail(fmt::format("expected the field '{}' to be a list of messages", key));
  Conversation& conversation = record.conversation;
  bool has_answer = false;
  for (const jinja::Value& item : fields.value().as_dict().find(std::string_view(key))->items()) {
    const size_t number = conversation.messages.size() + 1;
    Message message = read_message(fields, item, number, record.form == RecordForm::sharegpt);
    if (message.is_assistant()) {
      has_answer = true;
      if (is_empty(message))
        fields.fail(fmt::format("message {}: the assistant's text is empty", number));
    }
    conversation.messages.push_back(std::move(message));
  }
  if (!has_answer)
    fields.fail("no message is the assistant's, so there is nothing to learn from it");
  if (record.form != RecordForm::messages) return;
  conversation.tools = read_tools(fields);
  read_variables(fields, conversation);
}

// What two answers begin with alike, as TRL's extract_prompt finds it: a space before the place
// where they differ belongs to the answers.
size_t common_prompt(const std::string& chosen, const std::string& rejected) {
  const size_t shorter = std::min(chosen.size(), rejected.size());
  size_t common = 0;
  while (common < shorter && chosen[common] == rejected[common]) ++common;
  if (common == shorter && common > 0) --common;
  while (common > 0 && (static_cast<unsigned char>(chosen[common]) & 0xC0U) == 0x80U) --common;
  if (common > 0 && chosen[common - 1] == ' ') --common;
  return common;
}

void parse_texts(const Fields& fields, bool has_prompt, Record& record) {
  record.answer = fields.string("chosen");
  record.rejected = fields.string("rejected");
  if (has_prompt) {
    record.prompt = fields.string("prompt");
  } else {
    const size_t common = common_prompt(record.answer, record.rejected);
    record.prompt = record.answer.substr(0, common);
    record.answer.erase(0, common);
    record.rejected.erase(0, common);
  }
  check_answer(fields, "chosen", record.answer);
  check_answer(fields, "rejected", record.rejected);
}

void parse_conversations(const Fields& fields, bool has_prompt, Record& record) {
  const auto add = [&](const char* key, Conversation& conversation) {
    for (const jinja::Value& item : fields.value().as_dict().find(std::string_view(key))->items()) {
      const size_t number = conversation.messages.size() + 1;
      conversation.messages.push_back(read_message(fields, item, number, false));
    }
  };
  const json& chosen = fields.at("chosen");
  const json& rejected = fields.at("rejected");
  Conversation& conversation = record.conversation;
  conversation.tools = read_tools(fields);
  read_variables(fields, conversation);
  size_t common = 0;
  if (has_prompt) {
    add("prompt", conversation);
    record.prompt_messages = conversation.messages.size();
  } else {
    const size_t shorter = std::min(chosen.size(), rejected.size());
    while (common + 1 < shorter && chosen[common] == rejected[common]) ++common;
    record.prompt_messages = common;
  }
  record.rejected_conversation = conversation;
  add("chosen", conversation);
  add("rejected", record.rejected_conversation);
  for (const auto* side : {&conversation, &record.rejected_conversation})
    if (side->messages.size() <= record.prompt_messages)
      fields.fail("'chosen' and 'rejected' must each have a message after the prompt");
  if (record.prompt_messages == 0)
    fields.fail("no message is the prompt's: 'chosen' and 'rejected' differ from the first one on");
}

void parse_preference(const Fields& fields, Record& record) {
  const bool has_prompt = fields.has("prompt") && !fields.at("prompt").is_null();
  const auto are = [&](auto is) {
    return is(fields.at("chosen")) && is(fields.at("rejected")) &&
           (!has_prompt || is(fields.at("prompt")));
  };
  if (are([](const json& value) { return value.is_string(); }))
    parse_texts(fields, has_prompt, record);
  else if (are([](const json& value) { return value.is_array(); }))
    parse_conversations(fields, has_prompt, record);
  else
    fields.fail(
        "expected 'prompt', 'chosen' and 'rejected' to be three strings, or three lists of "
        "messages; leave 'prompt' out where 'chosen' and 'rejected' begin with it");
}

}  // namespace

std::string_view name_of(RecordForm form) {
  constexpr std::array<std::string_view, 7> kNames = {
      "alpaca", "messages", "sharegpt", "prompt/completion", "preference", "text", "tokens"};
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
    case RecordForm::preference:
      parse_preference(fields, record);
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
