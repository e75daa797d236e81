// Records of answers that are compared: of two answers to a prompt (the form preference), and of
// one that is desirable or not (unpaired).
#pragma once

#include "text/record/record_fields.h"
#include "text/record/record_form.h"

namespace snug::text {

// Throw RecordError where the fields are neither all texts nor all lists of messages, an answer is
// empty or missing, two answers have no prompt in common, or a label is not true or false.
void parse_preference(const RecordFields& fields, const RecordRules& rules, Record& record);
void parse_unpaired(const RecordFields& fields, const RecordRules& rules, Record& record);

}  // namespace snug::text
