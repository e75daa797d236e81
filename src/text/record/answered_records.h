// Records of a prompt and one answer to it: two texts, or a conversation, of which the answer is
// learned.
#pragma once

#include <functional>
#include <optional>

#include "text/record/record_fields.h"
#include "text/record/record_form.h"
#include "text/record/record_question.h"

namespace snug::text {

using HasField = std::function<bool(const char*)>;

// The fields of a record of the form prompt_completion; nothing where it is none.
struct CompletionFields {
  const char* prompt;
  const char* answer;
};
std::optional<CompletionFields> completion_fields(const HasField& has);
// The answer of a record of the form alpaca; null where there is none.
const char* alpaca_answer(const HasField& has);

// Reads a prompt and its answer, in field `answer`: two texts, which are a conversation where a
// system message or a history stands next to them or the rules say so; or lists of messages, of
// which the prompt's are not learned. Throws RecordError where they are neither, or an answer is
// empty.
void parse_answer(const RecordFields& fields, const QuestionFields& question, const char* answer,
                  const RecordRules& rules, Record& record);

// Records of the forms alpaca and prompt_completion.
void parse_alpaca(const RecordFields& fields, const RecordRules& rules, Record& record);
void parse_completion(const RecordFields& fields, const RecordRules& rules, Record& record);

// What a label says: true, 1, or either as text (in tables all cells are texts); nothing where it
// is none of them.
std::optional<bool> label_of(const nlohmann::json& value);

// Throws RecordError for a record whose label says that its answer is not desirable, where labels
// are not what is learned from.
void check_label(const RecordFields& fields);

}  // namespace snug::text
