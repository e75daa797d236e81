// Records as tables hold them, which know texts alone and often have names with capitals: they are
// written as the records that they stand for. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>

#include "text/record/record_fields.h"

namespace snug::text {

// The record, whose text is `text`, with lists of messages in place of the texts that hold their
// JSON: {"messages": "[{\"role\": ...}]"} or {"messages": ["{\"role\": ...}", ...]}. Nothing where
// there are none. An answer that is JSON of anything else stays the text that it is.
std::optional<std::string> with_messages_of_texts(const RecordFields& fields,
                                                  const std::string& text);

// The record with its fields' names in small letters, {"Question": ...}; nothing where they are so
// already, or where two would have the same name.
std::optional<std::string> with_small_names(const RecordFields& fields, const std::string& text);

}  // namespace snug::text
