// The forms of records that users know, seen from their fields:
//   alpaca            instruction, input (or context; may be absent), output (or response)
//   messages          messages: [{role, content}, ...]
//   sharegpt          conversations: [{from, value}, ...], or the same with role and content
//   prompt_completion prompt, completion (or response): two strings, or two lists of messages; or
//                     input and target, or query (or question) and response: strings
//   preference        chosen, rejected: strings, or messages; and a prompt, question, query or
//                     instruction, or a conversation; without them it is what chosen and rejected
//                     begin with alike. Where it is asked for, also messages and
//                     rejected_response, the answer that the last message is preferred to
//   unpaired          label, true or false: whether the answer is desirable; and the fields of one
//                     of the forms above that have an answer
//   text              text
//   tokens            input_ids, and lists next to it (token_record.h)
// The form unpaired counts only where it is asked for, and pairs of answers, two examples each, do
// then, too. Where input_ids stands next to text, the tokens count: somebody made them of it.
//
// Next to a conversation there may be a system message (system, system_prompt, system_message),
// tools, a list (or its JSON as text), and chat_template_kwargs, variables for the chat template. A
// record of texts with a system message or a history of earlier turns is a conversation as well.
// Fields that are not used are counted and named; those that would change what is learned in a way
// that Snug does not know are refused (field_meaning.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/record_forms.h"
#include "base/words.h"
#include "text/chat/conversation.h"
#include "text/record/learning_rules.h"
#include "text/record/record_mapping.h"
#include "text/record/record_reader.h"
#include "text/record/token_record.h"

namespace snug::text {

using base::RecordForm;

constexpr std::string_view name_of(RecordForm form) { return base::word_of(form); }

// How records are read.
struct RecordRules {
  // Only the fields of this form count; none: the form is seen from the fields.
  std::optional<RecordForm> form{};
  bool has_encoder = false;                // labels of tokens are not those of input_ids
  std::span<const std::string> ignored{};  // fields that are as if they were not there
  const RecordMapping* mapping = nullptr;  // of names that are not Snug's; null: there is none
  LearningRules learning{};                // of the messages of conversations with one answer
  // Records of texts are conversations, though they have no system message and no history: others
  // of the file do.
  bool texts_are_chats = false;
};

// The fields that nothing is read of, whatever a record holds.
std::vector<std::string> unread_fields(const RecordRules& rules);

// A record, parsed: which fields are filled depends on the form.
struct Record {
  RecordForm form = RecordForm::text;
  int64_t number = 0;
  int line = 0;
  std::string prompt{};         // alpaca (rendered), prompt_completion, preference, unpaired
  std::string answer{};         // of these; the whole of text; of preference what was chosen
  std::string rejected{};       // preference: what was not
  Conversation conversation{};  // where it is one; of preference with what was chosen
  Conversation rejected_conversation{};  // the prompt and what was not
  size_t prompt_messages = 0;            // preference, unpaired: of these, the prompt's
  bool is_desirable = false;             // unpaired
  TokenRecord tokens{};                  // tokens: those that attention_mask shows
  std::vector<int32_t> labels{};         // tokens of an encoder: what its decoder is to predict
  const char* chat_field = nullptr;      // that makes a conversation of texts, where one does
  std::vector<std::string> unused{};     // fields that say something which is not used
  std::vector<std::string> ignored{};    // of RecordRules::ignored those that it has
  bool is_conversation() const { return !conversation.messages.empty(); }
};

// The form of a record that has the fields for which `has` holds; with `wanted`, only the fields of
// that form count. None where they are of no form.
std::optional<RecordForm> form_of(const std::function<bool(const char*)>& has,
                                  std::optional<RecordForm> wanted);

// What to say of a record with the fields `keys` ("id, question") that is of no form.
std::string no_form_message(const std::string& keys, std::optional<RecordForm> wanted);

// Throws RecordError for broken JSON, a record whose fields are of no form, wrong types, unknown
// roles, empty answers, conversations without an assistant's text, fields that would change what is
// learned, and records that are long (record_reader.h); for tokens see token_record.h. The text of
// the form text may be empty.
Record parse_record(const RawRecord& raw, const std::string& path, const RecordRules& rules = {});

// The prompt of Stanford Alpaca for an instruction, with or without input. It ends in
// "### Response:\n"; the answer follows directly.
std::string alpaca_prompt(std::string_view instruction, std::string_view input);

}  // namespace snug::text
