// What the fields of a message say about whether it is learned, in the words of other tools.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/chat/conversation.h"
#include "text/chat/jinja/values/value.h"
#include "text/record/record_fields.h"

namespace snug::text {

// Whether a message says that it is learned (weight of OpenAI, train and training of axolotl, loss
// of ms-swift, loss_mask, loss_scale: not where they are 0 or false; masked: not where it is 1 or
// true). None where it says nothing, and where another role's says more than that it is not.
// Leaves fields that mean nothing to Snug to `fields`. Throws RecordError for values in between,
// for fields that disagree, for training on another role's text, and for others that would change
// what is learned. `number`: of the message, from 1.
std::optional<OwnSay> says_learned(const RecordFields& fields, const jinja::Dict& message,
                                   std::string_view role, size_t number);

// Whether two messages are the same but for what they say of that.
bool say_the_same(const Message& one, const Message& other);

// Hears what a copy of a message, in field `copied`, says of that, and leaves what else only the
// copy says to `fields`. Throws RecordError where both say something, and not the same.
void hear_copy(const RecordFields& fields, const char* copied, const Message& copy, size_t number,
               Message& message);

}  // namespace snug::text
