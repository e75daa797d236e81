// The messages of a record, and what its chat template is given next to them.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "text/record/record_fields.h"
#include "text/record/record_form.h"

namespace snug::text {

// Fields next to a conversation that hold its system message.
inline constexpr auto kSystemFields =
    std::to_array<const char*>({"system", "system_prompt", "system_message"});

// A message has the fields role and content, or from and value, and any that its template reads.
// The text of a message of the role function_call or tool_call is the JSON of calls, which it is
// given as tool_calls. `number`: which of the record, from 1, for complaints. Throws RecordError
// for other fields, unknown roles and fields that would change what is learned
// (message_learning.h). One that says nothing of that may be learned if `is_learned`;
// settle_learning decides.
Message read_message(const RecordFields& fields, const jinja::Value& item, size_t number,
                     bool is_learned = true);

// Whether a message says nothing: no text, no parts, no call, no thought.
bool is_empty_message(const Message& message);

// The messages of field `key`, a list or a single one, after those that the conversation has.
// `is_learned`: as in read_message.
void add_messages(const RecordFields& fields, const char* key, Conversation& conversation,
                  bool is_learned = true);

// The same after the messages of the prompt, all that the conversation has so far, which `key` may
// begin with once more: they stay once, and what the copies say of learning is heard. Returns
// whether it does. Throws RecordError where it repeats some of them only.
bool add_messages_after_prompt(const RecordFields& fields, const char* key,
                               Conversation& conversation);

// The variables for the template that the record gives. Throws RecordError where they are no
// object.
void read_variables(const RecordFields& fields, Conversation& conversation);

// Adds what the record says next to the messages: tools, variables, and a system message, which
// comes before all others. Returns how many messages that added. Throws RecordError where the first
// one is another system message.
size_t add_setting(const RecordFields& fields, Conversation& conversation);

// Settles which messages are learned. Throws RecordError where none is, or one of the assistant's
// that is learned is empty. `added`: as add_setting returns it.
void settle_learning(const RecordFields& fields, const LearningRules& rules,
                     Conversation& conversation, size_t added);

// The conversation of a record of the forms messages and sharegpt, in field `key`. Throws
// RecordError as these do.
void parse_messages(const RecordFields& fields, const char* key, const RecordRules& rules,
                    Record& record);

}  // namespace snug::text
