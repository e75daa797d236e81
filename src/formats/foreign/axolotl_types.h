// The `type` of axolotl's data sets: how a record's fields become a prompt and its answer, a
// conversation or a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/foreign/tool_entries.h"
#include "formats/recipe/data_entry.h"

namespace snug::formats {

// Whether a type is of conversations, whose fields the entry's own keys name (field_messages).
bool is_chat_type(std::string_view type);

// Sets the form and the fields of an entry whose type is a word that is no chat type; `rl` is the
// recipe's key of that name. Returns the chat template that the type has, or an empty text. Throws
// UserError for types that are not built, with what to do in their place.
std::string apply_axolotl_type(const ToolEntry& tool, std::string_view rl, DataEntry& entry);

// The same for a type that is a map of fields and formats.
void apply_axolotl_map(std::vector<Written> keys, DataEntry& entry);

}  // namespace snug::formats
