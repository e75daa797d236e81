// How a recipe writes its sources of records (data_entry.h): a path alone, or a map such as
// {path: org/name, split: train, weight: 2}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/recipe/data_entry.h"
#include "formats/recipe/recipe_keys.h"

namespace YAML {
class Node;
}

namespace snug::formats {

// The entries of a value, each as text that parse_entry takes: a path; a map with a path; a list of
// these; or a map of names to these, which become the entries' names.
std::vector<std::string> entry_items(const YAML::Node& value);

// A key that some map of a value has twice; empty where there is none. yaml-cpp keeps both.
std::string key_twice(const YAML::Node& value);

// Whether an entry has a key of this name.
bool is_entry_key(std::string_view name);

// An entry from its text. Throws UserError at the place of `written` for an unknown key, a value
// that a key cannot have, and a map without a path.
DataEntry parse_entry(const std::string& item, const Written& written);

// The entry's text with the keys of another one, as "data.split=test" changes it. Nothing where
// the keys are an entry of their own, with a path.
std::string with_keys_of(const std::string& item, const std::string& keys);

// The shortest text that reads back as the same entry, or list of entries.
std::string entry_text(const DataEntry& entry);
std::string entries_text(const std::vector<DataEntry>& entries);

}  // namespace snug::formats
