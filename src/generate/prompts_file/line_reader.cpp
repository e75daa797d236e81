#include "generate/prompts_file/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/questions/prompt.h"
#include "generate/recipe_request.h"
#include "plan/spec/adapter_slots.h"
#include "plan/spec/data_keys.h"
#include "text/chat/folder_stop_ids.h"
#include "text/chat/jinja/allowance.h"
#include "text/record/record_error.h"
#include "text/record/record_messages.h"
#include "text/record/record_question.h"
#include "text/record/record_spelling.h"

namespace snug::generate {
namespace {

using formats::PromptFormat;
using text::RecordFields;

constexpr std::array kIdFields{"ids", "input_ids", "prompt_token_ids"};
constexpr std::array kMessageFields{"messages", "conversations", "conversation"};
constexpr std::array kTextFields{"text", "input"};
constexpr std::array kIdentifyingFields{"custom_id", "id"};

// What no line of the file can be asked for.
class JobError : public base::UserError {
 public:
  using base::UserError::UserError;
};

bool is_list_of_messages(const nlohmann::json& value) {
  return value.is_object() || (value.is_array() && !value.empty() && value[0].is_object());
}

text::RawRecord with_record_text(const text::RawRecord& raw, std::string text) {
  text::RawRecord result;
  result.number = raw.number;
  result.line = raw.line;
  result.text = std::move(text);
  return result;
}

// A text or a list alone is a prompt.
text::RawRecord as_object(const text::RawRecord& raw) {
  const size_t first = raw.text.find_first_not_of(" \t\r\n");
  const bool is_alone =
      first != std::string::npos && (raw.text[first] == '"' || raw.text[first] == '[');
  return with_record_text(raw, is_alone ? fmt::format("{{\"prompt\": {}}}", raw.text) : raw.text);
}

bool has_prompt(const RecordFields& fields) {
  const auto holds = [&](const char* key) { return fields.holds(key); };
  return std::ranges::any_of(kIdFields, holds) || std::ranges::any_of(kMessageFields, holds) ||
         std::ranges::any_of(kTextFields, holds) || text::question_fields(fields).text != nullptr;
}

bool begins_with_system(const text::Conversation& conversation) {
  if (conversation.messages.empty()) return false;
  const std::string& role = conversation.messages.front().role();
  return role == "system" || role == "developer";
}

// The line as an object with Snug's names: of a table the names may have capitals and lists may be
// texts.
text::RawRecord with_known_names(const text::RawRecord& raw, const std::string& path,
                                 std::span<const std::string> ignored,
                                 const text::RecordMapping& mapping) {
  text::RawRecord record = as_object(raw);
  if (!mapping.is_empty())
    record.text = mapping.rewritten(record.text, [&](const std::string& what) {
      throw text::RecordError(raw.number, what, path, raw.line);
    });
  const RecordFields fields(record, path, ignored);
  if (auto lists = text::with_messages_of_texts(fields, record.text))
    return with_record_text(record, std::move(*lists));
  if (has_prompt(fields) || fields.has("body")) return record;
  if (auto small = text::with_small_names(fields, record.text))
    return with_record_text(record, std::move(*small));
  return record;
}

}  // namespace

struct LineReader::Prompt {
  int64_t number = 0;  // of the line, from 1
  std::string text{};
  PromptFormat form = PromptFormat::raw;
  std::string input{};  // of an instruction
  std::optional<engine::Ids> ids{};
  std::optional<text::Conversation> conversation{};
};

LineReader::LineReader(const formats::Recipe& recipe, const models::ModelSource& model,
                       const text::Tokenizer* tokenizer)
    : recipe_(recipe),
      model_(model),
      tokenizer_(tokenizer),
      mapping_(plan::record_mapping(recipe, {})) {
  for (plan::NamedAdapter& adapter : plan::named_adapters(recipe))
    adapters_.push_back(std::move(adapter.name));
  if (tokenizer != nullptr) forms_.emplace(*tokenizer);
}

void LineReader::read(const text::RawRecord& raw, const std::string& path, AskedLine& line) {
  if (!raw.problem.empty()) throw text::RecordError(raw.number, raw.problem, path, raw.line);
  if (raw.is_long)
    throw text::RecordError(
        raw.number,
        fmt::format("it has more than the {} bytes that a line may have", text::kMaxRecordBytes),
        path, raw.line, text::Fault::size);
  const text::RawRecord record = with_known_names(raw, path, recipe_.ignore_fields, mapping_);
  const RecordFields fields(record, path, recipe_.ignore_fields);
  for (const char* key : kIdentifyingFields)
    if (fields.has(key)) line.passed_on[key] = fields.document().at(key);
  const bool is_request = fields.holds("body") && fields.document().at("body").is_object();
  try {
    const text::jinja::Allowance allowance;  // limits everything that is rendered for the line
    if (is_request) {
      const text::RawRecord body = with_record_text(raw, fields.at("body").dump());
      const RecordFields inner(body, path, recipe_.ignore_fields);
      read_object(inner, raw.number - 1, line);
      refuse_unknown_settings(inner);
      for (const char* key : {"method", "url"}) fields.use(key);
    } else {
      read_object(fields, raw.number - 1, line);
    }
  } catch (const text::RecordError&) {
    throw;
  } catch (const JobError&) {
    throw;
  } catch (const base::UserError& error) {
    fields.fail(error.what());
  }
  for (const auto& [key, value] : fields.document().items())
    if (!fields.is_used(key)) line.passed_on[key] = value;
}

void LineReader::read_object(const RecordFields& fields, int64_t index, AskedLine& line) {
  const LineSettings settings = read_line_settings(recipe_, fields, adapters_);
  Prompt prompt = prompt_of(fields);
  prompt.number = index + 1;
  const bool is_chat = prompt.conversation.has_value();
  engine::Ids ids = ids_of(prompt, fields);
  if (ids.empty()) fields.fail("the prompt is empty", text::Fault::size);
  line.wants_ids = settings.wants_ids || prompt.ids || tokenizer_ == nullptr;
  int64_t most = 0;
  try {
    most = engine::new_tokens(settings.recipe, model_.config, std::ssize(ids));
  } catch (const base::UserError& error) {
    fields.fail(error.what(), text::Fault::size);
  }
  if (!settings.adapter.empty()) line.passed_on["adapter"] = settings.adapter;
  // A line with its own seed draws what it draws alone.
  line.request = {.prompt = std::move(ids),
                  .max_new_tokens = most,
                  .sampling = recipe_sampling(settings.recipe),
                  .end = end_of(settings, is_chat),
                  .adapter = settings.adapter,
                  .log_probabilities = recipe_log_probabilities(settings.recipe),
                  .deadline = {},
                  .form = recipe_form(settings.recipe, forms_ ? &*forms_ : nullptr),
                  .sample = settings.has_own_seed ? 0 : index};
}

LineReader::Prompt LineReader::prompt_of(const RecordFields& fields) {
  for (const char* key : kIdFields)
    if (fields.holds(key)) return of_ids(fields, key);
  for (const char* key : kMessageFields)
    if (fields.holds(key)) return of_messages(fields, key);
  const char* asked = text::question_fields(fields).text;
  if (asked != nullptr && is_list_of_messages(fields.document().at(asked)))
    return of_messages(fields, asked);
  if (asked != nullptr && fields.document().at(asked).is_array()) return of_ids(fields, asked);
  return of_text(fields);
}

LineReader::Prompt LineReader::of_ids(const RecordFields& fields, const char* key) const {
  engine::Ids ids;
  const nlohmann::json& value = fields.at(key);
  if (!value.is_array()) fields.fail(fmt::format("expected '{}' to be a list of token ids", key));
  for (const nlohmann::json& id : value) {
    if (!id.is_number_integer())
      fields.fail(fmt::format("expected '{}' to be a list of token ids", key));
    const auto wide = id.get<int64_t>();
    if (wide < 0 || wide >= model_.config.vocab_size)
      fields.fail(fmt::format("'{}' holds {}, but the model's vocabulary has {} ids, 0 to {}", key,
                              id.dump(), model_.config.vocab_size, model_.config.vocab_size - 1));
    ids.push_back(static_cast<int32_t>(wide));
  }
  return {.ids = std::move(ids)};
}

LineReader::Prompt LineReader::of_messages(const RecordFields& fields, const char* key) const {
  text::Conversation conversation;
  text::add_messages(fields, key, conversation, false);
  text::add_setting(fields, conversation);
  return {.conversation = std::move(conversation)};
}

LineReader::Prompt LineReader::of_text(const RecordFields& fields) const {
  const bool is_given = recipe_.is_given("prompt_format");
  text::QuestionFields asked = text::question_fields(fields);
  for (const char* key : kTextFields)
    if (asked.text == nullptr && fields.holds(key)) asked = {key};
  if (asked.text == nullptr)
    fields.fail(
        fmt::format("expected prompt, messages, instruction, question, text or ids; found: {}; "
                    "fields={{prompt: NAME}} takes the field NAME",
                    fields.keys()));
  const std::string_view name = asked.text;
  const bool is_question = name == "question" || name == "query";
  if (is_question && fields.holds("context") && fields.document().at("context").is_string())
    asked.input = "context";
  const bool has_encoder = model_.config.has_encoder();
  const auto chat_field = text::conversation_field(fields, asked, {.has_encoder = has_encoder});
  const bool is_meant_so = is_given && recipe_.prompt_format != PromptFormat::chat;
  if (chat_field && is_meant_so && *chat_field != name)
    fields.fail(
        fmt::format("'{0}' makes a conversation of it, but prompt_format={1} writes a text "
                    "alone; leave prompt_format out, or ignore_fields={0}",
                    *chat_field, base::word_of(recipe_.prompt_format)));
  if (recipe_.prompt_format == PromptFormat::chat || (chat_field && !is_meant_so)) {
    text::Conversation conversation;
    text::add_question(fields, asked, conversation);
    text::add_setting(fields, conversation);
    return {.conversation = std::move(conversation)};
  }
  const bool is_instruction = name == "instruction";
  Prompt prompt{.text = fields.string(asked.text), .form = recipe_.prompt_format};
  if (is_instruction && !is_given) prompt.form = PromptFormat::alpaca;
  if (asked.input != nullptr) prompt.input = fields.string(asked.input);
  return prompt;
}

engine::Ids LineReader::ids_of(Prompt& prompt, const RecordFields& fields) {
  if (!recipe_.system.empty() && !prompt.conversation)
    throw JobError(
        "'system' is a message of a conversation, and a line has a text or ids alone; give "
        "prompt_format=chat next to it, or leave it out");
  if (prompt.ids) return std::move(*prompt.ids);
  if (tokenizer_ == nullptr)
    throw JobError("the prompts are texts, but the model folder has no tokenizer; give ids");
  if (prompt.conversation) return chat_ids(prompt, fields);
  const bool is_alpaca = prompt.form == PromptFormat::alpaca;
  std::string text = prompt.text;
  if (is_alpaca)
    text = text::alpaca_prompt(prompt.text, prompt.input);
  else if (!prompt.input.empty())
    text += "\n" + prompt.input;
  return model_.config.has_encoder() ? engine::encoder_prompt(*tokenizer_, text)
                                     : engine::text_prompt(*tokenizer_, text);
}

engine::Ids LineReader::chat_ids(Prompt& prompt, const RecordFields& fields) {
  text::Conversation& conversation = *prompt.conversation;
  if (model_.config.has_encoder())
    fields.fail("it is a conversation, which is not built for encoder-decoders; give a prompt");
  std::vector<text::Message>& messages = conversation.messages;
  if (!messages.empty() && messages.back().is_assistant()) {
    messages.pop_back();
    ++dropped_answers_;
  }
  const size_t system_messages = begins_with_system(conversation) ? 1 : 0;
  if (messages.size() == system_messages)
    fields.fail("it has no message that can be answered", text::Fault::size);
  if (!recipe_.system.empty() && system_messages == 0)
    messages.insert(messages.begin(), text::Message("system", recipe_.system));
  unwritten_.add(chat().unwritten(conversation, true), prompt.number);
  return engine::chat_prompt(*tokenizer_, chat(), conversation);
}

const text::ChatTemplate& LineReader::chat() {
  try {
    if (!chat_) chat_.emplace(recipe_.chat_template, *tokenizer_);
  } catch (const base::UserError& error) {
    if (!recipe_.chat_template.empty()) throw JobError(error.what());
    throw JobError(
        fmt::format("{}; prompt_format=raw asks a question as the text that it is", error.what()));
  }
  return *chat_;
}

engine::AnswerEnd LineReader::end_of(const LineSettings& settings, bool is_chat) {
  if (settings.ignores_ends) return answer_end(settings.stop_ids, settings.recipe.stop, tokenizer_);
  std::optional<engine::Ids>& known = is_chat ? chat_ends_ : text_ends_;
  if (!known)
    known = tokenizer_ == nullptr ? text::folder_stop_ids(model_.folder, recipe_.adapter)
                                  : engine::end_ids(recipe_, *tokenizer_, is_chat);
  engine::Ids ids = *known;
  ids.insert(ids.end(), settings.stop_ids.begin(), settings.stop_ids.end());
  return answer_end(std::move(ids), settings.recipe.stop, tokenizer_);
}

std::vector<std::string> LineReader::notes(const std::string& path) const {
  std::vector<std::string> notes;
  if (const std::string unwritten = unwritten_.text(); !unwritten.empty())
    notes.push_back(fmt::format("{}: {}", path, unwritten));
  if (dropped_answers_ > 0)
    notes.push_back(fmt::format(
        "{}: {} conversation{} with the assistant's answer, which is left out and asked for anew",
        path, dropped_answers_, dropped_answers_ == 1 ? " ends" : "s end"));
  return notes;
}

}  // namespace snug::generate
