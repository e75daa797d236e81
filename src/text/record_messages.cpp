#include "text/record_messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/json_parser.h"
#include "text/blank.h"
#include "text/jinja/json_values.h"
#include "text/jinja/limits.h"

namespace snug::text {
namespace {

std::string role_of(const RecordFields& fields, const std::string& name) {
  constexpr std::array<std::string_view, 8> kRoles{
      "system", "developer", "user", "assistant", "tool", "ipython", "function", "tool_results"};
  if (name == "human") return "user";
  if (name == "gpt") return "assistant";
  if (std::find(kRoles.begin(), kRoles.end(), name) == kRoles.end())
    fields.fail(fmt::format("the role '{}' is not known; expected {}, human or gpt", name,
                            fmt::join(kRoles, ", ")));
  return name;
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

jinja::Value value_of_text(const RecordFields& fields, const std::string& text) {
  base::parse_json_value(text, [&](const std::string& problem, size_t) {
    fields.fail(fmt::format("the field 'tools' is text that is not JSON: {}", problem));
  });
  try {
    return jinja::value_of_json(text);
  } catch (const jinja::TemplateError& error) {
    fields.fail(error.what());
  }
}

}  // namespace

Message read_message(const RecordFields& fields, const jinja::Value& item, size_t number,
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

jinja::Value read_tools(const RecordFields& fields) {
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

void read_variables(const RecordFields& fields, Conversation& conversation) {
  constexpr std::string_view kKey = "chat_template_kwargs";
  const jinja::Value* values = fields.value().as_dict().find(kKey);
  if (values == nullptr || values->is(jinja::Value::Kind::none)) return;
  if (!values->is(jinja::Value::Kind::dict))
    fields.fail(fmt::format("expected the field '{}' to be an object", kKey));
  for (const auto& [key, value] : values->as_dict().entries())
    conversation.variables.emplace_back(key.as_text(), value);
}

void parse_messages(const RecordFields& fields, const char* key, Record& record) {
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

}  // namespace snug::text
