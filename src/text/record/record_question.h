// What a record of texts asks: its prompt as one text, or, where it has a system message or earlier
// turns next to it, as the messages of a conversation, which a chat template writes.
#pragma once

#include <optional>
#include <string>

#include "text/record/record_fields.h"
#include "text/record/record_form.h"

namespace snug::text {

// The fields of a prompt.
struct QuestionFields {
  const char* text = nullptr;   // prompt, question, query, input; or instruction
  const char* input = nullptr;  // of an instruction or a question, where it has one
};

// An instruction, with its input where there is one.
QuestionFields instruction_fields(const RecordFields& fields);
// A prompt, a question, a query or an instruction, the first that is there; text is null where none
// is.
QuestionFields question_fields(const RecordFields& fields);

// The prompt as a text: an instruction in the form of Stanford Alpaca.
std::string question_text(const RecordFields& fields, const QuestionFields& question);

// The field of a record of texts that makes a conversation of it: a system message, tools or a
// history that are not empty, or a question or query, which the tools that write them put into a
// conversation. None of the latter for an encoder; throws RecordError for the former there.
std::optional<const char*> conversation_field(const RecordFields& fields,
                                              const QuestionFields& question,
                                              const RecordRules& rules);

// Adds the history, [[question, answer], ...] or messages, and the prompt as the user's message.
// Throws RecordError where they are none.
void add_history(const RecordFields& fields, Conversation& conversation);
void add_question(const RecordFields& fields, const QuestionFields& question,
                  Conversation& conversation);

}  // namespace snug::text
