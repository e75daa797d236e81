// Reads the fields with which other tools say whether a message is learned.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/chat/jinja/values/value.h"
#include "text/record/record_fields.h"

namespace snug::text {

// Whether a message is learned according to its fields: weight (OpenAI), train and training
// (axolotl), loss (ms-swift), loss_mask, loss_scale, which exclude it with 0 or false; and masked,
// which excludes it with 1 or true. Nothing if it has no such field, or if it has another role than
// the assistant's and is not excluded. Fields that Snug does not know are left to `fields`. Throws
// RecordError for values in between, for fields that disagree, for training on another role's text,
// and for other fields that would change what is learned. `number`: of the message, from 1.
std::optional<bool> says_learned(const RecordFields& fields, const jinja::Dict& message,
                                 std::string_view role, size_t number);

}  // namespace snug::text
