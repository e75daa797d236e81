// Reads the fields with which other tools say whether a message is learned.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/chat/conversation.h"
#include "text/chat/jinja/values/value.h"
#include "text/record/record_fields.h"

namespace snug::text {

// Whether a message is learned according to its fields: weight (OpenAI), train and training
// (axolotl), loss (ms-swift), loss_mask, loss_scale, which exclude it with 0 or false; and masked,
// which excludes it with 1 or true. Nothing if it has no such field. Of another role than the
// assistant's, train, training, trainable and masked say that it is learned, too; the others only
// say that it is not. Fields that Snug does not know are left to `fields`. Throws RecordError for
// values in between, for fields that disagree, and for other fields that would change what is
// learned. `number`: of the message, from 1.
std::optional<OwnSay> says_learned(const RecordFields& fields, const jinja::Dict& message,
                                   std::string_view role, size_t number);

// Whether two messages are equal apart from what they say about learning.
bool say_the_same(const Message& one, const Message& other);

// Applies what a copy of a message, in field `copied`, says about learning to the message, and
// leaves other fields that only the copy has to `fields`. Throws RecordError if both say something
// and disagree.
void hear_copy(const RecordFields& fields, const char* copied, const Message& copy, size_t number,
               Message& message);

}  // namespace snug::text
