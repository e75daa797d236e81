// The one table of recipe keys: reading, defaults, checks, printing, help and suggestions all come
// from it. A key is added here and as a field of Recipe, nowhere else.
#pragma once

#include "formats/recipe.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace snug::formats {

// What a key holds. A choice travels as its word, a size as bytes.
enum class ValueType : uint8_t { text, integer, number, boolean, size, choice, texts, integers };
using Value = std::variant<std::string, int64_t, double, bool, std::vector<std::string>,
                           std::vector<int64_t>>;

struct Range {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
  bool most_excluded = false;
};

// `from` is read as `to` when the key is written as `name` (its own name, or an alias).
struct Translation {
  std::string_view name;
  std::string_view from;
  std::string_view to;
};

// A word users know for something that Snug does not do yet, and what to say about it.
struct NotBuilt {
  std::string_view word;
  std::string_view advice;
};

struct RecipeKey {
  std::string_view name;
  std::string_view group;  // heading in help and recipe.yaml
  ValueType type = ValueType::text;
  std::string_view default_text;  // as a user would write it; "" with a computed default or none
  std::string_view help;
  Value (*get)(const Recipe&) = nullptr;  // null: recognised, but holds nothing
  void (*set)(Recipe&, const Value&) = nullptr;
  std::vector<std::string_view> aliases = {};
  std::vector<std::string_view> choices = {};  // in the order of the enum
  Range range = {};
  std::vector<Translation> translations = {};
  std::vector<NotBuilt> not_built = {};
  uint8_t verbs = 0;                       // bits of 1 << Verb
  std::string_view computed_default = "";  // in words, for help

  bool belongs_to(Verb verb) const { return (verbs >> static_cast<int>(verb) & 1) != 0; }
};

const std::vector<RecipeKey>& recipe_keys();
// By name or alias; nullptr when unknown.
const RecipeKey* find_recipe_key(std::string_view name);

// The value of one scalar or list item as the key's type, checked against its range and choices.
// `name` is what the user wrote (the key or an alias). Throws UserError with the location.
Value parse_value(const RecipeKey& key, std::string_view name,
                  const std::vector<std::string>& items, bool is_list, const base::Location& where);

// As a user would write it.
std::string value_text(const RecipeKey& key, const Value& value);

// The keys of a verb with type, default and help, grouped, for `snug VERB --help`.
std::string recipe_help(Verb verb);

}  // namespace snug::formats
