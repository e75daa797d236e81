// The forms of records that users know, seen from their fields:
//   alpaca            instruction, input (or context; may be absent), output (or response)
//   messages          messages: [{role, content}, ...], and where present tools, a list (or its
//                     JSON as text), and chat_template_kwargs, variables for the chat template
//   sharegpt          conversations: [{from, value}, ...]
//   prompt_completion prompt, completion (or response); or input and target
//   preference        prompt, chosen, rejected: three strings, or three lists of messages; without
//                     prompt it is what chosen and rejected begin with alike
//   unpaired          prompt, completion (or response): two strings, or two lists of messages; and
//                     label, true or false: whether the answer is desirable
//   text              text
//   tokens            input_ids, and next to it labels, attention_mask, position_ids where present
// The form unpaired counts only where it is asked for, and pairs of answers, two examples each, do
// then, too. Other fields are left alone: data sets carry ids, scores and sources next to the text.
// Where input_ids stands next to text, the tokens count: somebody made them of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/record_forms.h"
#include "base/words.h"
#include "text/conversation.h"
#include "text/record_reader.h"
#include "text/token_record.h"

namespace snug::text {

using base::RecordForm;

constexpr std::string_view name_of(RecordForm form) { return base::word_of(form); }

// A record, parsed: which fields are filled depends on the form.
struct Record {
  RecordForm form = RecordForm::text;
  int64_t number = 0;
  int line = 0;
  std::string prompt{};         // alpaca (rendered), prompt_completion, preference, unpaired
  std::string answer{};         // of these; the whole of text; of preference what was chosen
  std::string rejected{};       // preference: what was not
  Conversation conversation{};  // messages, sharegpt; unpaired; preference: of what was chosen
  Conversation rejected_conversation{};  // the prompt and what was not
  size_t prompt_messages = 0;            // preference, unpaired: of these, the prompt's
  bool is_desirable = false;             // unpaired
  TokenRecord tokens{};                  // tokens: those that attention_mask shows
  std::vector<int32_t> labels{};         // tokens of an encoder: what its decoder is to predict

  bool is_conversation() const { return !conversation.messages.empty(); }
};

// The form of a record that has the fields for which `has` holds; with `wanted`, only the fields of
// that form count. None where they are of no form.
std::optional<RecordForm> form_of(const std::function<bool(const char*)>& has,
                                  std::optional<RecordForm> wanted);

// What to say of a record with the fields `keys` ("id, question") that is of no form.
std::string no_form_message(const std::string& keys, std::optional<RecordForm> wanted);

// Throws UserError with file and line for broken JSON, a record whose fields are of no form,
// wrong types, unknown roles, empty answers, conversations without an assistant's text and records
// that are long (record_reader.h); for tokens see token_record.h. The text of the form text may be
// empty. With `wanted`, only the fields of that form count. `has_encoder`: labels of tokens are not
// those of input_ids (token_record.h).
Record parse_record(const RawRecord& raw, const std::string& path,
                    std::optional<RecordForm> wanted = std::nullopt, bool has_encoder = false);

// The prompt of Stanford Alpaca for an instruction, with or without input. It ends in
// "### Response:\n"; the answer follows directly.
std::string alpaca_prompt(std::string_view instruction, std::string_view input);

}  // namespace snug::text
