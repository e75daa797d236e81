// What the fields of a message say about whether it is learned, in the words of other tools.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/chat/jinja/values/value.h"
#include "text/record/record_fields.h"

namespace snug::text {

// Whether a message is learned where it is the assistant's: unless a field of it says 0 or false
// (weight of OpenAI, train and training of axolotl, loss of ms-swift, loss_mask, loss_scale), or
// masked that it is. Leaves fields that mean nothing to Snug to `fields`. Throws RecordError for
// values in between, for fields that disagree, for training on another role's text, and for others
// that would change what is learned. `number`: of the message, from 1.
bool is_learned(const RecordFields& fields, const jinja::Dict& message, std::string_view role,
                size_t number);

}  // namespace snug::text
