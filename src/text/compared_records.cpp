#include "text/compared_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "text/record_messages.h"

namespace snug::text {
namespace {

using nlohmann::json;

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

void parse_texts(const RecordFields& fields, bool has_prompt, Record& record) {
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
  fields.check_answer("chosen", record.answer);
  fields.check_answer("rejected", record.rejected);
}

// The messages of field `key`, after those that the conversation has.
void add_messages(const RecordFields& fields, const char* key, Conversation& conversation) {
  for (const jinja::Value& item : fields.value().as_dict().find(std::string_view(key))->items()) {
    const size_t number = conversation.messages.size() + 1;
    conversation.messages.push_back(read_message(fields, item, number, false));
  }
}

void parse_conversations(const RecordFields& fields, bool has_prompt, Record& record) {
  const json& chosen = fields.at("chosen");
  const json& rejected = fields.at("rejected");
  Conversation& conversation = record.conversation;
  conversation.tools = read_tools(fields);
  read_variables(fields, conversation);
  size_t common = 0;
  if (has_prompt) {
    add_messages(fields, "prompt", conversation);
    record.prompt_messages = conversation.messages.size();
  } else {
    const size_t shorter = std::min(chosen.size(), rejected.size());
    while (common + 1 < shorter && chosen[common] == rejected[common]) ++common;
    record.prompt_messages = common;
  }
  record.rejected_conversation = conversation;
  add_messages(fields, "chosen", conversation);
  add_messages(fields, "rejected", record.rejected_conversation);
  for (const auto* side : {&conversation, &record.rejected_conversation})
    if (side->messages.size() <= record.prompt_messages)
      fields.fail("'chosen' and 'rejected' must each have a message after the prompt");
  if (record.prompt_messages == 0)
    fields.fail("no message is the prompt's: 'chosen' and 'rejected' differ from the first one on");
}

bool read_label(const RecordFields& fields) {
  if (!fields.has("label"))
    fields.fail(
        fmt::format("has no field 'label', true where the answer is desirable and false "
                    "where it is not, which objective=kto learns from; found: {}",
                    fields.keys()));
  const json& label = fields.at("label");
  if (!label.is_boolean())
    fields.fail(fmt::format("expected the field 'label' to be true or false, found {}",
                            label.is_number() ? label.dump() : label.type_name()));
  return label.get<bool>();
}

}  // namespace

void parse_preference(const RecordFields& fields, Record& record) {
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

void parse_unpaired(const RecordFields& fields, Record& record) {
  record.is_desirable = read_label(fields);
  const auto answer = fields.first_of({"completion", "response"});
  if (!answer || !fields.has("prompt"))
    fields.fail(
        fmt::format("expected the fields 'prompt' and 'completion' next to 'label'; found: "
                    "{}",
                    fields.keys()));
  const json& prompt = fields.at("prompt");
  const json& completion = fields.at(*answer);
  if (prompt.is_string() && completion.is_string()) {
    record.prompt = fields.string("prompt");
    record.answer = fields.string(*answer);
    fields.check_answer(*answer, record.answer);
  } else if (prompt.is_array() && completion.is_array()) {
    Conversation& conversation = record.conversation;
    conversation.tools = read_tools(fields);
    read_variables(fields, conversation);
    add_messages(fields, "prompt", conversation);
    record.prompt_messages = conversation.messages.size();
    add_messages(fields, *answer, conversation);
    if (prompt.empty() || completion.empty())
      fields.fail(fmt::format("'prompt' and '{}' must each have a message", *answer));
  } else {
    fields.fail(
        fmt::format("expected 'prompt' and '{0}' to be two strings, or two lists of "
                    "messages",
                    *answer));
  }
}

}  // namespace snug::text
