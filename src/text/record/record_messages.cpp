#include "text/record/record_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "text/chat/jinja/values/compare.h"
#include "text/chat/message_learning.h"
#include "text/record/marked_chat.h"
#include "text/record/message_calls.h"
#include "text/record/message_role.h"
#include "text/record/message_turns.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using jinja::Value;

std::string role_of(const RecordFields& fields, const std::string& name) {
  const std::optional<std::string> role = known_role(name);
  if (!role)
    fields.fail(fmt::format(
        "the role '{0}' is not known; expected {1}; roles={{{0}: assistant}} says whose "
        "it is",
        name, known_role_names()));
  return *role;
}

// Whether it is the text of a part, which torchtune has under 'content' and LLaMA-Factory under
// 'value'.
bool is_text_of_part(const jinja::Dict& part, std::string_view key) {
  const Value* type = part.find(std::string_view("type"));
  const bool is_text =
      type == nullptr || (type->is(Value::Kind::text) && type->as_text() == "text");
  const bool is_alone =
      part.find(std::string_view(key == "value" ? "content" : "value")) == nullptr;
  return (key == "content" || key == "value") && is_text && is_alone &&
         part.find(std::string_view("text")) == nullptr;
}

// The parts of a content without the fields that are ignored.
jinja::Value read_content(const RecordFields& fields, const jinja::Value& content, size_t number) {
  using jinja::Value;
  const bool is_list = content.is(Value::Kind::list);
  if (!is_list && !content.is(Value::Kind::text) && !content.is(Value::Kind::none))
    fields.fail(fmt::format(
        "message {}: expected 'content' to be a text or a list of parts, found {}", number,
        content.is(Value::Kind::dict) ? "an object" : "a number, true or false"));
  if (!is_list) return content;
  jinja::List parts;
  for (const Value& part : content.items()) {
    jinja::Dict kept;
    if (part.is(Value::Kind::dict))
      for (const auto& [key, value] : part.as_dict().entries())
        if (!fields.is_ignored(key.as_text()))
          kept.set(is_text_of_part(part.as_dict(), key.as_text()) ? Value::text("text") : key,
                   value);
    parts.push_back(part.is(Value::Kind::dict) ? Value::dict(std::move(kept)) : part);
  }
  return Value::list(std::move(parts));
}

// Throws where a message has a text or a role in both words, and the two differ.
void check_one_meaning(const RecordFields& fields, const jinja::Dict& message, size_t number) {
  using jinja::Value;
  const auto text_of = [&](std::string_view key) -> const std::string* {
    const Value* value = message.find(key);
    const bool is_text = value != nullptr && value->is(Value::Kind::text);
    return is_text && !fields.is_ignored(key) ? &value->as_text() : nullptr;
  };
  const auto fail = [&](std::string_view used, std::string_view other) {
    fields.fail(
        fmt::format("message {0}: '{1}' and '{2}' are there, and say different things; "
                    "ignore_fields={2} reads the records without '{2}'",
                    number, used, other));
  };
  const Value* content = message.find(std::string_view("content"));
  const std::string* value = text_of("value");
  const bool has_content = content != nullptr && !content->is(Value::Kind::none);
  if (has_content && value != nullptr && !is_blank(*value) && !fields.is_ignored("content") &&
      Message(Value::dict(message)).content() != *value)
    fail("content", "value");
  const std::string* role = text_of("role");
  const std::string* from = text_of("from");
  if (role == nullptr || from == nullptr) return;
  const auto meant = known_role(*from);
  if (!meant) return fields.leave("from");  // a name, perhaps
  if (meant != known_role(*role) || is_call_role(*from) != is_call_role(*role))
    fail("role", "from");
}

// Whether a message that was read is a call and no more, by its role.
bool is_call_alone(const jinja::Value& item) {
  const auto says_call = [&](std::string_view key) {
    const jinja::Value* role = item.as_dict().find(key);
    return role != nullptr && role->is(Value::Kind::text) && is_call_role(role->as_text());
  };
  return says_call("role") || says_call("from");
}

// Adds a call to the assistant's turn that it goes on with: each of several calls is a message of
// its own in the data of ms-swift, after what the assistant says before it calls.
void add_to_turn(const RecordFields& fields, const Message& call, size_t number, Message& turn) {
  if (call.is_learned() != turn.is_learned())
    fields.fail(
        fmt::format("message {}: it is a call in the turn of the message before it, but only one "
                    "of the two says that it is not to be learned",
                    number));
  if (call.own_say()) turn.hear(*call.own_say());
  for (const auto& [key, value] : call.fields().as_dict().entries()) {
    const std::string& name = key.as_text();
    const Value* own = turn.find(name);
    if (own == nullptr) {
      turn = turn.with(name, value);
    } else if (name == "tool_calls") {
      jinja::List calls = own->items();
      calls.insert(calls.end(), value.items().begin(), value.items().end());
      turn = turn.with(name, Value::list(std::move(calls)));
    } else if (!jinja::equal(*own, value)) {
      fields.leave(name);
    }
  }
}

bool is_same_message(const Message& one, const Message& other) {
  const auto calls = [](const Message& message) {
    const jinja::Value* value = message.find("tool_calls");
    return value == nullptr ? jinja::Value::none() : *value;
  };
  return one.role() == other.role() && one.content() == other.content() &&
         jinja::equal(calls(one), calls(other));
}

// Whether an answer, in field `key`, begins with all messages of the prompt. Throws where it
// repeats some of them only.
bool begins_with_prompt(const RecordFields& fields, const char* key,
                        std::span<const Message> answer, std::span<const Message> prompt) {
  if (answer.size() > prompt.size() &&
      std::equal(prompt.begin(), prompt.end(), answer.begin(), is_same_message))
    return true;
  for (const Message& message : answer) {
    if (message.is_assistant()) break;
    for (const Message& asked : prompt)
      if (message.role() == "user" && is_same_message(asked, message))
        fields.fail(
            fmt::format("'{}' repeats a message of the user's from the prompt, but does not begin "
                        "with all of the prompt; leave the repeated messages out",
                        key));
  }
  return false;
}

// One message, and which words its role and its text have.
class MessageReader {
 public:
  MessageReader(const RecordFields& fields, const Value& item, size_t number)
      : fields_(fields), item_(item), number_(number) {
    const bool is_sharegpt = !holds("role") && holds("from");
    has_value_ = is_sharegpt || (!holds("content") && holds("value"));
    role_key_ = is_sharegpt ? "from" : "role";
    text_key_ = has_value_ ? "value" : "content";
    role_ = text_of(role_key_);
    holds_call_ = role_ != nullptr && is_call_role(*role_);
  }

  void check() const {
    const Value* text = find(text_key_);
    // A content that is null is left out, as transformers does; one that is not there at all is a
    // mistake, unless calls stand in its place.
    const bool lacks_text = text == nullptr && find("tool_calls") == nullptr &&
                            !holds("function_call") && !holds("refusal");
    const bool is_null = text != nullptr && text->is(Value::Kind::none);
    const bool must_be_text = holds_call_ || (has_value_ && !is_null);
    if (role_ == nullptr || lacks_text || (must_be_text && text_of(text_key_) == nullptr))
      fields_.fail(fmt::format("message {}: expected the strings '{}' and '{}'{}", number_,
                               role_key_, text_key_, left_out_note()));
    role_of(fields_, *role_);  // throws where it is not known
    check_one_meaning(fields_, item_.as_dict(), number_);
    if (!holds("function_call") || !find("function_call")->is_true()) return;
    if (holds("tool_calls") && find("tool_calls")->is_true())
      fields_.fail(
          fmt::format("message {}: 'tool_calls' and 'function_call' are both there; "
                      "ignore_fields=function_call reads the records without the latter",
                      number_));
  }

  Message message(bool is_learned) const {
    const std::string role = role_of(fields_, *role_);
    jinja::Dict entries;
    for (const auto& [key, value] : item_.as_dict().entries()) {
      if (key.as_text() == role_key_)
        entries.set(Value::text("role"), Value::text(role));
      else if (key.as_text() == text_key_ && find(key.as_text()) != nullptr)
        set_text(value, entries);
      else
        set_other(key, value, entries);
    }
    Message message(Value::dict(std::move(entries)));
    const auto says = says_learned(fields_, item_.as_dict(), role, number_);
    message.set_learned(is_learned);
    if (says) message.hear(*says);
    return message;
  }

 private:
  // A field that is ignored is as if it were not there.
  const Value* find(std::string_view key) const {
    const Value* value = item_.is(Value::Kind::dict) ? item_.as_dict().find(key) : nullptr;
    return value == nullptr || fields_.is_ignored(key) ? nullptr : value;
  }
  std::string left_out_note() const {
    if (!item_.is(Value::Kind::dict)) return "";
    for (const char* key : {role_key_, text_key_})
      if (item_.as_dict().find(std::string_view(key)) != nullptr && find(key) == nullptr)
        return fmt::format("; ignore_fields leaves '{}' out", key);
    return "";
  }
  bool holds(std::string_view key) const {
    const Value* value = find(key);
    return value != nullptr && !value->is(Value::Kind::none);
  }
  const std::string* text_of(std::string_view key) const {
    const Value* value = find(key);
    return value != nullptr && value->is(Value::Kind::text) ? &value->as_text() : nullptr;
  }

  void set_text(const Value& value, jinja::Dict& entries) const {
    if (holds_call_)
      set_calls(read_calls(fields_, value, number_), entries);
    else
      entries.set(Value::text("content"), read_content(fields_, value, number_));
  }

  void set_other(const Value& key, const Value& value, jinja::Dict& entries) const {
    const std::string& name = key.as_text();
    if (name == "content" || fields_.is_ignored(name)) return;  // null, or what text_key_ says
    if (name == "function_call" && value.is_true())             // OpenAI's older form of a call
      set_calls(read_calls(fields_, value, number_), entries);
    else if (name == "tool_calls")
      set_calls(read_tool_calls(fields_, value, number_), entries);
    else if (name == "tools")
      entries.set(key, read_tool_list(fields_, value, number_));
    else if (name != "function_call")
      entries.set(key, value);
  }

  static void set_calls(Value calls, jinja::Dict& entries) {
    if (calls.is_true()) entries.set(Value::text("tool_calls"), std::move(calls));
  }

  const RecordFields& fields_;
  const Value& item_;
  size_t number_;
  bool has_value_ = false;
  bool holds_call_ = false;
  const char* role_key_ = "role";
  const char* text_key_ = "content";
  const std::string* role_ = nullptr;  // as it is written; null where it is no text
};

}  // namespace

// Whether a text, a list of parts or of calls says something.
bool says_anything(const jinja::Value& value) {
  using Kind = jinja::Value::Kind;
  if (value.is(Kind::text)) return !is_blank(value.as_text());
  if (!value.is(Kind::list)) return value.is_true();
  return std::ranges::any_of(value.items(), [](const jinja::Value& part) {
    const jinja::Value* text =
        part.is(Kind::dict) ? part.as_dict().find(std::string_view("text")) : &part;
    return text == nullptr || !text->is(Kind::text) || !is_blank(text->as_text());
  });
}

bool is_empty_message(const Message& message) {
  for (const char* key : {"content", "tool_calls", "reasoning_content"}) {
    const jinja::Value* value = message.fields().as_dict().find(std::string_view(key));
    if (value == nullptr) continue;
    if (says_anything(*value)) return false;
  }
  return true;
}

Message read_message(const RecordFields& fields, const jinja::Value& item, size_t number,
                     bool is_learned) {
  const MessageReader reader(fields, item, number);
  reader.check();
  return reader.message(is_learned);
}

void add_messages(const RecordFields& fields, const char* key, Conversation& conversation,
                  bool is_learned) {
  const jinja::Value& written = fields.value_of(key);
  const jinja::Value value =
      is_marked_chat(written) ? Value::list(messages_of_marks(written.as_text())) : written;
  const jinja::List alone{value};
  const bool is_list = value.is(jinja::Value::Kind::list);
  if (!is_list && !value.is(jinja::Value::Kind::dict))
    fields.fail(fmt::format("expected the field '{}' to be a list of messages", key));
  std::vector<Message>& messages = conversation.messages;
  const size_t first = messages.size();
  size_t number = first;
  for (const jinja::Value& item : messages_of_turns(is_list ? value.items() : alone)) {
    Message message = read_message(fields, item, ++number, is_learned);
    if (is_call_alone(item) && messages.size() > first && messages.back().is_assistant())
      add_to_turn(fields, message, number, messages.back());
    else
      messages.push_back(std::move(message));
  }
}

bool add_messages_after_prompt(const RecordFields& fields, const char* key,
                               Conversation& conversation) {
  std::vector<Message>& messages = conversation.messages;
  const size_t asked = messages.size();
  add_messages(fields, key, conversation);
  const std::span<const Message> all = messages;
  if (asked == 0 || !begins_with_prompt(fields, key, all.subspan(asked), all.first(asked)))
    return false;
  for (size_t i = 0; i < asked; ++i)
    hear_copy(fields, key, messages[asked + i], i + 1, messages[i]);
  const auto begin = messages.begin() + static_cast<std::ptrdiff_t>(asked);
  messages.erase(begin, begin + static_cast<std::ptrdiff_t>(asked));
  return true;
}

void read_variables(const RecordFields& fields, Conversation& conversation) {
  constexpr const char* kKey = "chat_template_kwargs";
  if (!fields.holds(kKey)) return;
  const jinja::Value& values = fields.value_of(kKey);
  if (!values.is(jinja::Value::Kind::dict))
    fields.fail(fmt::format("expected the field '{}' to be an object", kKey));
  for (const auto& [key, value] : values.as_dict().entries())
    conversation.variables.emplace_back(key.as_text(), value);
}

// A text, or a list of texts and of parts with one.
std::string system_text(const RecordFields& fields, const char* key) {
  if (!fields.at(key).is_array()) {
    const bool has_marks = fields.has("messages") && fields.document().at("messages").is_string();
    return has_marks ? without_system_mark(fields.string(key)) : fields.string(key);
  }
  jinja::Dict message;
  message.set(Value::text("role"), Value::text("system"));
  message.set(Value::text("content"), read_content(fields, fields.value_of(key), 0));
  const Message system(Value::dict(std::move(message)));
  for (const Value& part : system.find("content")->items()) {
    const Value* text =
        part.is(Value::Kind::dict) ? part.as_dict().find(std::string_view("text")) : &part;
    if (text == nullptr || !text->is(Value::Kind::text))
      fields.fail(fmt::format(
          "expected the field '{}' to be a text, or a list of parts that are texts", key));
  }
  return system.content();
}

std::string read_system(const RecordFields& fields) {
  std::string system;
  for (const char* key : kSystemFields) {
    if (!fields.holds(key)) continue;
    std::string text = system_text(fields, key);
    if (!system.empty() && !is_blank(text) && text != system)
      fields.fail(
          fmt::format("two fields have a system message, and '{0}' is another than the one "
                      "before it; ignore_fields={0} reads the records without it",
                      key));
    if (!is_blank(text)) system = std::move(text);
  }
  return system;
}

size_t add_setting(const RecordFields& fields, Conversation& conversation) {
  conversation.tools = read_tools(fields);
  read_variables(fields, conversation);
  const std::string system = read_system(fields);
  if (system.empty()) return 0;
  std::vector<Message>& messages = conversation.messages;
  if (!messages.empty() && (messages[0].role() == "system" || messages[0].role() == "developer")) {
    const char* key = *fields.first_held(kSystemFields);
    if (messages[0].content() != system)
      fields.fail(
          fmt::format("the field '{0}' is another system message than message 1; "
                      "ignore_fields={0} reads the records without it",
                      key));
    return 0;
  }
  messages.insert(messages.begin(), Message("system", system));
  messages.front().set_learned(true);  // where its role is
  return 1;
}

void settle_learning(const RecordFields& fields, const LearningRules& rules,
                     Conversation& conversation, size_t added) {
  std::vector<Message>& messages = conversation.messages;
  choose_learned(rules, messages);
  size_t learned = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_learned()) continue;
    const bool is_empty = is_empty_message(messages[i]);
    if (is_empty && messages[i].is_assistant())
      fields.fail(fmt::format("message {}: the assistant's text is empty", i + 1 - added),
                  Fault::size);
    if (!is_empty) ++learned;
  }
  if (learned == 0) fields.fail(why_nothing_is_learned(rules, messages), Fault::size);
}

// NeMo's field, the role, or a list of those, whose messages are not learned.
void read_mask(const RecordFields& fields, std::vector<Message>& messages) {
  constexpr const char* kKey = "mask";
  if (!fields.holds(kKey)) return;
  const nlohmann::json& written = fields.document().at(kKey);
  const nlohmann::json names = written.is_array() ? written : nlohmann::json::array({written});
  if (!std::ranges::all_of(names, [](const auto& name) { return name.is_string(); })) return;
  fields.use(kKey);
  for (const std::string name : names) {
    if (is_blank(name)) continue;
    const auto role = known_role(name);
    if (!role)
      fields.fail(
          fmt::format("the field '{0}' is '{1}', which is no role whose messages are not to be "
                      "learned; ignore_fields={0} reads the records without it",
                      kKey, name));
    for (Message& message : messages)
      if (message.role() == *role) message.hear({false, kKey});
  }
}

void parse_messages(const RecordFields& fields, const char* key, const RecordRules& rules,
                    Record& record) {
  if (fields.at(key).is_null())
    fields.fail(fmt::format("the field '{}' is empty", key), Fault::size);
  if (!fields.at(key).is_array() && !is_marked_chat(fields.value_of(key)))
    fields.fail(
        fmt::format("expected the field '{}' to be a list of messages, or its JSON as text", key));
  add_messages(fields, key, record.conversation);
  read_mask(fields, record.conversation.messages);
  const size_t added = add_setting(fields, record.conversation);
  settle_learning(fields, rules.learning, record.conversation, added);
}

}  // namespace snug::text
