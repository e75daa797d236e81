#include "text/record/record_form.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>

#include "base/shown_text.h"
#include "text/audit/proposed_mapping.h"
#include "text/record/answered_records.h"
#include "text/record/compared_records.h"
#include "text/record/marked_chat.h"
#include "text/record/misread_form.h"
#include "text/record/record_error.h"
#include "text/record/record_fields.h"
#include "text/record/record_messages.h"
#include "text/record/record_spelling.h"

namespace snug::text {
namespace {

constexpr std::string_view kExpected =
    "expected the fields of one of these forms: instruction and output (alpaca), messages, "
    "conversations (sharegpt), prompt and completion, input and output, question and answer, "
    "chosen "
    "and rejected (preference), text, or input_ids (tokens); fields={prompt: NAME, completion: "
    "NAME} takes those of other names";

void use_token_fields(const RecordFields& fields) {
  for (const char* key : kTokenKeys) fields.use(key);
}

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

bool has_prompt_and_answer(const std::function<bool(const char*)>& has) {
  return completion_fields(has).has_value();
}

bool has_two_answers(const std::function<bool(const char*)>& has) {
  return has("chosen") && has("rejected");
}

void parse_fields(const RecordFields& fields, const RecordRules& rules, Record& record) {
  switch (record.form) {
    case RecordForm::tokens:
      use_token_fields(fields);
      return rules.has_encoder ? parse_token_pair(fields, record) : parse_tokens(fields, record);
    case RecordForm::messages:
      return parse_messages(fields, "messages", rules, record);
    case RecordForm::sharegpt:
      return parse_messages(fields, "conversations", rules, record);
    case RecordForm::alpaca:
      return parse_alpaca(fields, rules, record);
    case RecordForm::prompt_completion:
      return parse_completion(fields, rules, record);
    case RecordForm::preference:
      return parse_preference(fields, rules, record);
    case RecordForm::unpaired:
      return parse_unpaired(fields, rules, record);
    case RecordForm::text:
      record.answer = fields.string("text");
  }
}

bool has_one_answer(RecordForm form) {
  return form != RecordForm::preference && form != RecordForm::unpaired &&
         form != RecordForm::text && form != RecordForm::tokens;
}

// Whether a mapping makes a field that says which form a record is of.
bool begins_with_mapped(RecordForm form, const RecordMapping& mapping) {
  const auto makes = [&](std::initializer_list<const char*> keys) {
    return std::ranges::any_of(keys, [&](const char* key) { return mapping.makes(key); });
  };
  switch (form) {
    case RecordForm::messages:
      return makes({"messages"});
    case RecordForm::sharegpt:
      return makes({"conversations"});
    case RecordForm::alpaca:
      return makes({"instruction", "input", "output"});
    case RecordForm::prompt_completion:
      return makes(
          {"prompt", "question", "query", "completion", "answer", "response", "input", "output"});
    case RecordForm::preference:
      return makes({"chosen", "rejected", "rejected_response"});
    case RecordForm::unpaired:
      return makes({"prompt", "question", "query", "completion", "answer", "response", "label"});
    case RecordForm::text:
      return makes({"text"});
    case RecordForm::tokens:
      return makes({"input_ids"});
  }
  return false;
}

RawRecord with_text(const RawRecord& raw, std::string text) {
  RawRecord result;
  result.number = raw.number;
  result.line = raw.line;
  result.text = std::move(text);
  return result;
}

RawRecord mapped(const RawRecord& raw, const std::string& path, const RecordMapping& mapping) {
  return with_text(raw, mapping.rewritten(raw.text, [&](const std::string& what) {
    throw RecordError(raw.number, what, path, raw.line);
  }));
}

// Throws where a field shows that the record is not what its form says.
void check_form_is_meant(const RecordFields& fields, const RecordRules& rules,
                         const Record& record) {
  const RecordForm form = record.form;
  if (form == RecordForm::text) fields.judge_unused(why_no_text);
  if (form == RecordForm::prompt_completion || form == RecordForm::alpaca)
    fields.judge_unused([&](std::string_view field, const nlohmann::json& value) {
      return why_no_choice(
          field, value,
          record.is_conversation() ? record.conversation.messages.back().content() : record.answer);
    });
  const RecordMapping* mapping = rules.mapping;
  if (form == RecordForm::preference && mapping != nullptr && orders_answers(*mapping))
    fields.judge_unused([&](std::string_view field, const nlohmann::json& value) {
      return why_no_order(field, value, *mapping);
    });
}

// The names that well-known data sets have for the two answers of a pair.
const RecordMapping* known_pairs(const RecordFields& fields) {
  struct Names {
    const char* chosen;
    const char* rejected;
    RecordMapping mapping;
  };
  const auto named = [](const char* chosen, const char* rejected) {
    return Names{chosen, rejected,
                 RecordMapping(std::array{fmt::format("chosen={}", chosen),
                                          fmt::format("rejected={}", rejected)},
                               {})};
  };
  static const std::array kKnown{named("response_j", "response_k"),
                                 named("chosen_response", "rejected_response")};
  for (const Names& names : kKnown)
    if (fields.has(names.chosen) && fields.has(names.rejected)) return &names.mapping;
  return nullptr;
}

// The names that well-known data sets have for what Snug calls otherwise.
const RecordMapping* known_names(const RecordFields& fields) {
  static const RecordMapping kList(std::array{std::string("messages=conversation")}, {});
  static const RecordMapping kText(std::array{std::string("messages=chat")}, {});
  if (const RecordMapping* pairs = known_pairs(fields)) return pairs;
  if (fields.has("conversation") && fields.document().at("conversation").is_array()) return &kList;
  return fields.has("chat") && is_marked_chat(fields.value_of("chat")) ? &kText : nullptr;
}

// A record that is of a form once it is written in another way: by names that are well known, or in
// small letters.
std::optional<RawRecord> respelled(const RecordFields& fields, const RawRecord& raw,
                                   const std::string& path, const RecordRules& rules) {
  if (const RecordMapping* known = known_names(fields)) return mapped(raw, path, *known);
  const auto small = with_small_names(fields, raw.text);
  if (!small) return std::nullopt;
  RawRecord result = with_text(raw, *small);
  const RecordFields renamed(result, path, rules.ignored, rules.mapping);
  const auto has = [&](const char* key) { return renamed.has(key); };
  const bool is_known = form_of(has, rules.form) || known_names(renamed) != nullptr;
  return is_known ? std::optional(std::move(result)) : std::nullopt;
}

// What a record of no form may be mapped by; empty where that is not to be guessed.
std::string proposal_for(const RawRecord& raw, const RecordRules& rules) {
  // The record is parsed once more, within what reading may hold.
  constexpr size_t kMostBytes = size_t{256} << 10;
  if (rules.mapping != nullptr || raw.text.size() > kMostBytes) return "";
  const bool wants_pairs = rules.form == RecordForm::preference;
  if (rules.form && !wants_pairs) return "";
  const auto mapping = propose_mapping(raw.text);
  const auto is_pair = [](const auto& field) { return field.first == "chosen"; };
  if (!mapping || (wants_pairs && std::ranges::none_of(mapping->fields, is_pair))) return "";
  return fmt::format("; perhaps {}", base::shown_text(mapping->text()));
}

// A record whose fields have Snug's names.
Record parse_named(const RawRecord& raw, const std::string& path, const RecordRules& rules) {
  const RecordFields fields(raw, path, rules.ignored, rules.mapping);
  if (auto lists = with_messages_of_texts(fields, raw.text)) {
    if (rules.mapping != nullptr) lists = rules.mapping->with_renamed_messages(*lists);
    return parse_named(with_text(raw, std::move(*lists)), path, rules);
  }
  const auto has = [&](const char* key) { return fields.has(key) && fields.is_meant(key); };
  auto form = form_of(has, rules.form);
  // The fields that a mapping makes come before those that the record has by chance.
  if (rules.mapping != nullptr && (!form || !begins_with_mapped(*form, *rules.mapping)))
    if (const auto made =
            form_of([&](const char* key) { return rules.mapping->makes(key); }, rules.form)) {
      // One that was left out, or that stands next to another field of the same meaning.
      if (!form_of(has, made))
        fields.fail(fmt::format(
            "fields makes a record of the form {}, and the record's own fields, or ignore_fields, "
            "leave open what is its prompt and what its answer; found: {}; ignore_fields takes "
            "away "
            "those that are not meant",
            name_of(*made), fields.keys()));
      form = made;
    }
  if (!form)
    if (const auto other = respelled(fields, raw, path, rules))
      return parse_named(*other, path, rules);
  if (!form && fields.has("content")) fields.judge_unused(why_no_text);
  if (!form) fields.fail(no_form_message(fields.keys(), rules.form) + proposal_for(raw, rules));
  Record record;
  record.form = *form;
  record.number = raw.number;
  record.line = raw.line;
  if (has_one_answer(*form)) check_label(fields);
  parse_fields(fields, rules, record);
  check_form_is_meant(fields, rules, record);
  if (rules.texts_are_chats) record.chat_field = nullptr;  // all are, whatever their fields
  record.unused = fields.unused();
  record.ignored = fields.ignored();
  return record;
}

}  // namespace

std::vector<std::string> unread_fields(const RecordRules& rules) {
  std::vector<std::string> unread;
  for (const std::string& name : rules.ignored)
    if (rules.mapping == nullptr || !rules.mapping->takes(name)) unread.push_back(name);
  return unread;
}

std::optional<RecordForm> form_of(const std::function<bool(const char*)>& has,
                                  std::optional<RecordForm> wanted) {
  const auto may_be = [&](RecordForm form) { return !wanted || *wanted == form; };
  const bool is_replaced = has("rejected_response") && (has("messages") || has("conversations"));
  // Only where it is asked for: a label next to an answer may be of anything.
  if (wanted == RecordForm::unpaired) {
    if (has_two_answers(has) || is_replaced) return RecordForm::preference;
    if (has("prompt") || has("completion") || has("label") || has("kto_tag"))
      return RecordForm::unpaired;
  }
  if (wanted == RecordForm::preference && is_replaced) return RecordForm::preference;
  if (may_be(RecordForm::tokens) && has("input_ids")) return RecordForm::tokens;
  if (may_be(RecordForm::messages) && has("messages")) return RecordForm::messages;
  if (may_be(RecordForm::sharegpt) && has("conversations")) return RecordForm::sharegpt;
  if (may_be(RecordForm::alpaca) && has("instruction") && alpaca_answer(has) != nullptr)
    return RecordForm::alpaca;
  if (may_be(RecordForm::prompt_completion) && has_prompt_and_answer(has))
    return RecordForm::prompt_completion;
  if (may_be(RecordForm::preference) && has_two_answers(has)) return RecordForm::preference;
  if (may_be(RecordForm::text) && has("text")) return RecordForm::text;
  return std::nullopt;
}

std::string no_form_message(const std::string& keys, std::optional<RecordForm> wanted) {
  if (!wanted) return fmt::format("{}; found: {}", kExpected, keys);
  if (*wanted == RecordForm::preference)
    return fmt::format(
        "expected the fields chosen and rejected, and where there is one prompt: pairs of answers, "
        "which objective=dpo, orpo and simpo learn from; found: {}",
        keys);
  if (*wanted == RecordForm::unpaired)
    return fmt::format(
        "expected the fields prompt, completion and label, or pairs of answers (chosen and "
        "rejected), which objective=kto learns from; found: {}",
        keys);
  return fmt::format("expected the fields of the form {}, as data_format says; found: {}",
                     name_of(*wanted), keys);
}

Record parse_record(const RawRecord& raw, const std::string& path, const RecordRules& rules) {
  if (!raw.problem.empty()) throw RecordError(raw.number, raw.problem, path, raw.line);
  if (raw.is_long)
    throw RecordError(raw.number,
                      fmt::format("it has {} bytes, more than the {} that are read at once",
                                  raw.end - raw.begin, kMaxRecordBytes),
                      path, raw.line, Fault::size);
  if (rules.mapping == nullptr) return parse_named(raw, path, rules);
  return parse_named(mapped(raw, path, *rules.mapping), path, rules);
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
