// The messages of a record, and what its chat template is given next to them.
#pragma once

#include <cstddef>

#include "text/record_fields.h"
#include "text/record_form.h"

namespace snug::text {

// A message of the form sharegpt has the fields from and value, one of other forms role, content
// and any that its template reads. `number`: which of the record, from 1, for complaints. Throws
// UserError for other fields and unknown roles.
Message read_message(const RecordFields& fields, const jinja::Value& item, size_t number,
                     bool is_sharegpt);

// What the assistant may call, as a list of dictionaries; data sets hold it as JSON text, too. None
// where the record has none. Throws UserError where the field is neither.
jinja::Value read_tools(const RecordFields& fields);

// The variables for the template that the record gives. Throws UserError where they are no object.
void read_variables(const RecordFields& fields, Conversation& conversation);

// The conversation of a record of the forms messages and sharegpt, in field `key`. Throws UserError
// where it has no answer of an assistant, or an empty one.
void parse_messages(const RecordFields& fields, const char* key, Record& record);

}  // namespace snug::text
