#include "text/record/compared_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/message_learning.h"
#include "text/record/answered_records.h"
#include "text/record/field_meaning.h"
#include "text/record/message_role.h"
#include "text/record/record_messages.h"
#include "text/record/record_question.h"

namespace snug::text {
namespace {

using nlohmann::json;

constexpr auto kLists = std::to_array<const char*>({"messages", "conversations"});

// Messages, or a single one.
bool is_list(const json& value) {
  if (!value.is_array()) return value.is_object();
  return std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_object(); });
}

// Whether a list of messages, or a single one, begins with an answer and not with its prompt.
bool begins_with_answer(const json& messages) {
  const json& first = messages.is_array() && !messages.empty() ? messages[0] : messages;
  for (const char* key : {"role", "from"})
    if (first.is_object() && first.contains(key))
      return first[key].is_string() && known_role(first[key].get<std::string>()) == "assistant";
  return false;
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

std::vector<Message> messages_of(const RecordFields& fields, const char* key) {
  Conversation conversation;
  add_messages(fields, key, conversation);
  return std::move(conversation.messages);
}

// The messages that both conversations begin with alike, one of each left for the answer.
std::vector<Message> common_messages(const RecordFields& fields) {
  std::vector<Message> common = messages_of(fields, "chosen");
  const std::vector<Message> rejected = messages_of(fields, "rejected");
  const size_t shorter = std::min(common.size(), rejected.size());
  size_t count = 0;
  while (count + 1 < shorter && say_the_same(common[count], rejected[count])) ++count;
  common.resize(count, Message("user", ""));
  return common;
}

// Returns whether the answer begins with the messages of the prompt, which the conversation has.
bool add_answer(const RecordFields& fields, const char* key, Conversation& conversation) {
  const size_t before = conversation.messages.size();
  bool repeats = false;
  if (fields.at(key).is_string()) {
    fields.check_answer(key, fields.string(key));
    conversation.messages.emplace_back("assistant", fields.string(key));
  } else {
    repeats = add_messages_after_prompt(fields, key, conversation);
  }
  for (size_t i = before; i < conversation.messages.size(); ++i) {
    const Message& message = conversation.messages[i];
    if (message.is_assistant() && is_empty_message(message))
      fields.fail(fmt::format("message {}, of '{}', is empty", i + 1, key), Fault::size);
  }
  return repeats;
}

// Adds the answers of a pair to the prompt that the record's conversation has; the first `common`
// messages of both are the prompt's as well.
void add_answers(const RecordFields& fields, size_t common, Record& record) {
  record.prompt_messages = record.conversation.messages.size() + common;
  record.rejected_conversation = record.conversation;
  const bool in_chosen = add_answer(fields, "chosen", record.conversation);
  const bool in_rejected = add_answer(fields, "rejected", record.rejected_conversation);
  if (in_chosen != in_rejected)
    fields.fail(
        fmt::format("only '{}' begins with the messages of the prompt; leave them out of "
                    "it, or let both begin with them",
                    in_chosen ? "chosen" : "rejected"));
  for (const auto* side : {&record.conversation, &record.rejected_conversation})
    if (side->messages.size() <= record.prompt_messages)
      fields.fail("'chosen' and 'rejected' must each have a message after the prompt");
  if (record.prompt_messages == 0)
    fields.fail("no message is the prompt's: 'chosen' and 'rejected' differ from the first one on");
  record.prompt_messages += add_setting(fields, record.conversation);
  add_setting(fields, record.rejected_conversation);
}

// Throws where a field that is not read may be the prompt of two answers that have none, which
// would then be the words that both happen to begin with. Where these are none, any other text may
// be it.
void refuse_other_prompts(const RecordFields& fields, bool is_empty) {
  constexpr auto kOthers = std::to_array<std::string_view>(
      {"problem", "task", "text", "post", "user", "human", "inputs", "prompt_text", "user_prompt",
       "prompts", "context", "conversation", "dialogue", "message", "user_message", "request",
       "instructions", "query_text", "source_text"});
  for (const auto& [key, value] : fields.document().items()) {
    const bool is_named_so = std::ranges::find(kOthers, key) != kOthers.end();
    const bool is_text = is_empty && value.is_string() && key != "chosen" && key != "rejected" &&
                         !is_label_of_record(key, value);
    if (!says_nothing(value) && (is_named_so || is_text))
      fields.fail(
          fmt::format("'chosen' and 'rejected' have no 'prompt', but '{0}' stands next to them; "
                      "call it 'prompt', or ignore_fields={0} takes what both begin with for the "
                      "prompt{1}",
                      key, is_empty ? ", which is nothing here" : ""));
  }
}

// Throws where one of two transcripts ends where the other's answer begins, after what marks its
// turn ("Assistant:", "<|assistant|>", "[/INST]"): its answer is empty.
void check_ends_after_mark(const RecordFields& fields, const Record& record) {
  const bool is_chosen = record.answer.size() < record.rejected.size();
  const std::string& shorter = is_chosen ? record.answer : record.rejected;
  const std::string& longer = is_chosen ? record.rejected : record.answer;
  const size_t end = shorter.find_last_not_of(" \t\r\n");
  if (end == std::string::npos ||
      std::string_view(":>]").find(shorter[end]) == std::string_view::npos)
    return;
  if (longer.starts_with(std::string_view(shorter).substr(0, end + 1)))
    fields.check_answer(is_chosen ? "chosen" : "rejected", "");
}

// Two answers that begin with their prompt.
void parse_texts_alone(const RecordFields& fields, const RecordRules& rules, Record& record) {
  if (const auto key = conversation_field(fields, {}, rules))
    fields.fail(
        fmt::format("'{}' stands before a prompt, but there is none next to 'chosen' and "
                    "'rejected'; give 'prompt'",
                    *key));
  check_ends_after_mark(fields, record);
  const size_t common = common_prompt(record.answer, record.rejected);
  refuse_other_prompts(fields, common == 0);
  record.prompt = record.answer.substr(0, common);
  record.answer.erase(0, common);
  record.rejected.erase(0, common);
}

void parse_texts(const RecordFields& fields, const QuestionFields& question,
                 const RecordRules& rules, Record& record) {
  record.answer = fields.string("chosen");
  record.rejected = fields.string("rejected");
  if (question.text == nullptr)
    parse_texts_alone(fields, rules, record);
  else
    record.prompt = question_text(fields, question);
  fields.check_answer("chosen", record.answer);
  fields.check_answer("rejected", record.rejected);
}

// The messages that two conversations begin with alike, where one of them is the prompt that stands
// next to them as a text.
size_t common_with(const RecordFields& fields, const char* prompt) {
  const std::vector<Message> common = common_messages(fields);
  const std::string text = fields.string(prompt);
  for (const Message& message : common)
    if (message.content() == text) return common.size();
  fields.fail(
      fmt::format("'{0}' is none of the messages that 'chosen' and 'rejected' begin with; "
                  "ignore_fields={0} takes what both begin with for the prompt",
                  prompt));
}

// The prompt is a list of messages, a text, a conversation, or what both answers begin with.
void parse_conversations(const RecordFields& fields, const QuestionFields& question,
                         Record& record) {
  const json& chosen = fields.at("chosen");
  const bool has_own_prompt = is_list(chosen) && !begins_with_answer(chosen);
  const auto list = fields.first_held(kLists);
  size_t common = 0;
  if (question.text != nullptr && is_list(fields.at(question.text)))
    add_messages(fields, question.text, record.conversation);
  else if (question.text != nullptr && has_own_prompt)
    common = common_with(fields, question.text);
  else if (question.text != nullptr)
    add_question(fields, question, record.conversation);
  else if (list && !has_own_prompt)
    add_messages(fields, *list, record.conversation);
  else
    common = common_messages(fields).size();
  add_answers(fields, common, record);
}

// A conversation, and another answer in place of its last message.
void parse_replaced(const RecordFields& fields, Record& record) {
  constexpr const char* kRejected = "rejected_response";
  Conversation& conversation = record.conversation;
  add_messages(fields, fields.first_of(kLists).value(), conversation);
  if (conversation.messages.empty() || !conversation.messages.back().is_assistant())
    fields.fail(
        "the last message is not the assistant's, so 'rejected_response' cannot stand in its "
        "place");
  Conversation& rejected = record.rejected_conversation;
  rejected = conversation;
  rejected.messages.pop_back();
  record.prompt_messages = rejected.messages.size();
  add_answer(fields, kRejected, rejected);
  record.prompt_messages += add_setting(fields, conversation);
  add_setting(fields, rejected);
}

// What a pair asks. An input is it where nothing else is.
QuestionFields question_of_pair(const RecordFields& fields) {
  const QuestionFields question = question_fields(fields);
  const auto has_own_prompt = [&](const char* key) {
    const json& answer = fields.document().at(key);
    return !answer.is_string() && is_list(answer) && !begins_with_answer(answer);
  };
  const bool is_asked = question.text != nullptr || fields.first_held(kLists) ||
                        has_own_prompt("chosen") || has_own_prompt("rejected");
  const bool has_input = fields.holds("input") && fields.document().at("input").is_string();
  return !is_asked && has_input ? QuestionFields{"input"} : question;
}

// Throws where both answers begin with their prompt as well. A word or two may be chance.
void check_prompt_stands_once(const RecordFields& fields, const char* prompt) {
  constexpr size_t kLeastBytes = 12;
  const std::string text = fields.string(prompt);
  if (text.size() >= kLeastBytes && text.find(' ') != std::string::npos &&
      fields.string("chosen").starts_with(text) && fields.string("rejected").starts_with(text))
    fields.fail(
        fmt::format("'chosen' and 'rejected' both begin with the text of '{0}', which would stand "
                    "there twice; ignore_fields={0} takes what both begin with for the prompt",
                    prompt));
}

bool read_label(const RecordFields& fields) {
  constexpr auto kLabels = std::to_array<const char*>({"label", "kto_tag"});
  const auto key = fields.first_of(kLabels);
  if (!key)
    fields.fail(
        fmt::format("has no field 'label', true where the answer is desirable and false "
                    "where it is not, which objective=kto learns from; found: {}",
                    fields.keys()));
  const json& value = fields.at(*key);
  const std::optional<bool> label = label_of(value);
  if (!label)
    fields.fail(fmt::format("expected the field '{}' to be true or false, found {}", *key,
                            value.is_number() ? value.dump() : value.type_name()));
  return *label;
}

}  // namespace

void parse_preference(const RecordFields& fields, const RecordRules& rules, Record& record) {
  if (!fields.has("chosen") || !fields.has("rejected")) return parse_replaced(fields, record);
  const QuestionFields question = question_of_pair(fields);
  const bool has_text_prompt = question.text != nullptr && fields.at(question.text).is_string();
  const bool has_list_prompt = question.text != nullptr && is_list(fields.at(question.text));
  const json& chosen = fields.at("chosen");
  const json& rejected = fields.at("rejected");
  for (const char* key : {"chosen", "rejected"})
    if (fields.at(key).is_null()) fields.check_answer(key, "");
  const bool are_strings = chosen.is_string() && rejected.is_string();
  const bool are_texts = are_strings && !has_list_prompt;
  const bool are_lists = is_list(chosen) && is_list(rejected);
  if ((!are_strings && !are_lists) || (question.text && !has_text_prompt && !has_list_prompt))
    fields.fail(
        "expected 'prompt', 'chosen' and 'rejected' to be three strings, or three lists of "
        "messages, of which the answers may be strings; leave 'prompt' out where 'chosen' and "
        "'rejected' begin with it");
  if (are_texts && question.text) check_prompt_stands_once(fields, question.text);
  const auto chat_field =
      question.text ? conversation_field(fields, question, rules) : std::nullopt;
  const bool has_list = !question.text && fields.first_held(kLists);
  const bool stays_text =
      are_texts && !chat_field && !has_list && !(question.text && rules.texts_are_chats);
  if (stays_text) return parse_texts(fields, question, rules, record);
  record.chat_field = are_texts ? chat_field.value_or(nullptr) : nullptr;
  parse_conversations(fields, question, record);
}

void parse_unpaired(const RecordFields& fields, const RecordRules& rules, Record& record) {
  record.is_desirable = read_label(fields);
  if (const auto list = fields.first_held(kLists)) {
    parse_messages(fields, *list, rules, record);
    if (!record.conversation.messages.back().is_assistant())
      fields.fail("the last message is not the assistant's, so there is no answer to be labelled");
    record.prompt_messages = record.conversation.messages.size() - 1;
    return;
  }
  constexpr auto kAnswers =
      std::to_array<const char*>({"completion", "response", "answer", "output"});
  const auto answer = fields.first_of(kAnswers);
  const QuestionFields question = question_fields(fields);
  if (!answer || question.text == nullptr)
    fields.fail(
        fmt::format("expected the fields 'prompt' and 'completion' next to 'label'; found: "
                    "{}",
                    fields.keys()));
  for (const char* key : {question.text, *answer})
    if (const json& value = fields.at(key);
        !value.is_string() && !value.is_null() && !is_list(value))
      fields.fail(fmt::format("expected '{}' to be a string or a list of messages", key));
  parse_answer(fields, question, *answer, rules, record);
}

}  // namespace snug::text
