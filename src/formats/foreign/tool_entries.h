// A list of data sets as recipes of other tools write it: each item is a name, or a map of keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/recipe_keys.h"

namespace YAML {
class Node;
}

namespace snug::formats {

struct ToolEntry {
  std::string place;          // "datasets[1]"
  base::Location where;       // of the list
  std::vector<Written> keys;  // nested ones as "type.format"; of a name alone it is "path"

  // Null where it has no such key, or one without a value.
  const Written* find(std::string_view name) const;
  // Empty where there is none. Throws UserError for a list of several.
  std::string text(std::string_view name) const;
  // A mistake about this entry.
  [[noreturn]] void fail(const std::string& problem) const;
};

// A value as the items of such a list, each a name, or a map on one line.
std::vector<std::string> tool_items(const YAML::Node& value);

// The entries of a written list, or the one of a map. Throws UserError where values nest more than
// such lists do.
std::vector<ToolEntry> tool_entries(const Written& list);

// The one value of a key that takes one. Throws UserError for a list of several.
const std::string& one_text(const Written& written);

// Takes the keys that begin with `prefix` out of the entry; their names are without it.
std::vector<Written> take_below(ToolEntry& entry, std::string_view prefix);

}  // namespace snug::formats
