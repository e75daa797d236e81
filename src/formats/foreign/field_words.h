// Writes the items of an entry's `fields` and `roles` (text/record/record_mapping.h) for what other
// tools say of their records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/data_entry.h"

namespace snug::formats {

// A text as it stands in a template of `fields`.
std::string in_template(std::string_view text);
// A field in a template: {NAME}.
std::string field_in_template(std::string_view name);

// Adds "NAME=SOURCE", unless they are the same.
void take_field(DataEntry& entry, std::string_view name, std::string_view source);
// Adds the first of the sources of which a record has all fields, and they say something.
void take_first_of(DataEntry& entry, std::string_view name,
                   const std::vector<std::string>& sources);
// A field that records may lack.
void take_if_there(DataEntry& entry, std::string_view name, std::string_view source);

// The list of messages in the field `list`, which Snug knows by two names. Returns the name by
// which `fields` knows it then.
std::string take_messages(DataEntry& entry, const std::string& list, bool says_form);

// What the fields of each message are called; empty: as usual. `lists`: the names of the fields
// that hold such messages.
struct MessageWords {
  std::string role;
  std::string content;
};
void take_message_fields(DataEntry& entry, const std::vector<std::string>& lists,
                         const MessageWords& words);

// Adds "WORD=ROLE", unless a role is known by that word anyway.
void take_role(DataEntry& entry, std::string_view word, std::string_view role);

}  // namespace snug::formats
