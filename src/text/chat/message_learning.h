// What the fields of a message say about whether it is learned, in the words of other tools.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/chat/jinja/values/value.h"
#include "text/record/record_fields.h"

namespace snug::text {

// Whether a message says that it is learned (weight of OpenAI, train and training of axolotl, loss
// of ms-swift, loss_mask, loss_scale: not where they are 0 or false; masked: not where it is 1 or
// true). None where it says nothing, and where another role's says more than that it is not.
// Leaves fields that mean nothing to Snug to `fields`. Throws RecordError for values in between,
// for fields that disagree, for training on another role's text, and for others that would change
// what is learned. `number`: of the message, from 1.
std::optional<bool> says_learned(const RecordFields& fields, const jinja::Dict& message,
                                 std::string_view role, size_t number);

}  // namespace snug::text
