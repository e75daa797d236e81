// The table of all recipe keys, from which reading, defaults, checks, printing, help and
// suggestions are derived. To add a key, add it here and as a field of Recipe.
#pragma once

#include "formats/recipe/recipe.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace snug::formats {

// The type of a key's value. A choice is stored as its index in RecipeKey::choices, a size in
// bytes.
enum class ValueType : uint8_t {
  text,
  integer,
  number,
  boolean,
  size,
  choice,
  texts,
  integers,
  numbers,
  entries  // sources of records
};
using Value = std::variant<std::string, int64_t, double, bool, std::vector<std::string>,
                           std::vector<int64_t>, std::vector<double>, std::vector<DataEntry>>;

// The field of Recipe that a key sets. A key without get and set is recognised but has no value.
struct RecipeField {
  ValueType type = ValueType::text;
  Value (*get)(const Recipe&) = nullptr;
  void (*set)(Recipe&, const Value&) = nullptr;
};

struct Range {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
  bool least_excluded = false;
  bool most_excluded = false;
  bool or_zero = false;  // 0 is allowed, whatever the minimum
  // Values from 1 on must be integers; values below 1 are a share of all that there are of these.
  std::string_view counted = "";
};

// The value `from` is read as `to`: under every name of the key, or only under the alias `name`. An
// alias with words of its own accepts only those in messages.
struct Translation {
  std::string_view from;
  std::string_view to;
  std::string_view name = "";
};

// A word for something that Snug does not do yet, and the message about it.
struct NotBuilt {
  std::string_view word;
  std::string_view advice;
};

// Under the name `name`, a key's value may consist of several words, of which one is the key's own
// value. `word` is another of them: it sets `key` to `value`, or has no effect if these are empty.
// One that stands alone leaves the key itself as if it were not given.
struct SideWord {
  std::string_view name;
  std::string_view word;
  std::string_view key = "";
  std::string_view value = "";
  bool stands_alone = false;
};

// What a changed value of a key means when a run continues from a checkpoint.
enum class OnResume : uint8_t {
  fixed,    // it would be another run, so it is refused
  free,     // the run continues with other numbers, which is reported
  ignored,  // it changes no result, or its effect is compared instead
};

struct RecipeKey {
  std::string_view name = {};
  std::string_view group = {};             // heading in the help and in recipe.yaml
  std::string_view default_text = {};      // as a user would write it; empty: none, or computed
  std::string_view computed_default = {};  // in words, for help
  std::string_view help = {};
  RecipeField field = {};
  std::vector<std::string_view> aliases = {};
  std::vector<std::string_view> choices = {};  // in the order of the enum
  Range range = {};
  std::vector<Translation> translations = {};
  std::vector<NotBuilt> not_built = {};
  std::vector<SideWord> side_words = {};
  bool whole_texts = false;  // of a list: commas and spaces are part of a text
  // Of a list: its items are NAME=VALUE, or NAME:VALUE where they are whole texts; or it is a map.
  bool pairs = false;
  std::string_view empty_list = {};  // the word that an empty list means; empty: it is refused
  uint8_t verbs = 0;                 // bits of 1 << Verb
  OnResume on_resume = OnResume::free;

  bool belongs_to(Verb verb) const { return (verbs >> static_cast<int>(verb) & 1) != 0; }
};

const std::vector<RecipeKey>& recipe_keys();
// Finds a key by name or alias; nullptr when unknown.
const RecipeKey* find_recipe_key(std::string_view name);
// The words that a user may write for a choice under this name of the key, for messages.
std::vector<std::string_view> words_under(const RecipeKey& key, std::string_view name);

// A key as the user wrote it: `name` is the key or an alias, `items` the scalar or the list.
struct Written {
  std::string name;
  std::vector<std::string> items;
  bool is_list = false;
  base::Location where;
  bool is_default = false;  // default of another tool: the recipe takes precedence
  bool is_blank = false;    // "key:" with nothing after it
  std::string said_as{};    // another tool's key that was written instead of `name`

  const std::string& shown() const { return said_as.empty() ? name : said_as; }
};

// The written keys, by the name of the key.
using WrittenByKey = std::map<std::string_view, Written>;

// Adds the settings of the files that `given` names as deepspeed and accelerate_config. The recipe
// and the command line take precedence over them; it is a mistake if the recipe, or the other file,
// contradicts a file. Returns notes for the user.
std::vector<std::string> add_config_files(WrittenByKey& given, base::Mistakes& mistakes);

// Removes the side words from the written values, and adds the keys that they set.
std::vector<Written> without_side_words(std::vector<Written> all, base::Mistakes& mistakes);

// Parses true, yes, on, false, no and off in upper or lower case; nothing for any other text.
std::optional<bool> parse_boolean(std::string_view text);

// The items of a list in one text: "q_proj,v_proj", "q_proj v_proj", "[q_proj, v_proj]" and
// ["q_proj", "v_proj"] all have the same two. Nothing for a text with a quote that is not closed.
std::optional<std::vector<std::string>> items_in_text(std::string_view text);

// The written value, converted to the key's type and checked against its range and choices. Throws
// UserError with the location.
Value parse_value(const RecipeKey& key, const Written& written);

// Whether two values of a key mean the same; the order of a list of names does not matter.
bool is_same_value(const Value& one, const Value& other);

// The value as a user would write it.
std::string value_text(const RecipeKey& key, const Value& value);

// Only the keys that a recipe was given: what a user would write for the same recipe.
std::string given_to_yaml(const Recipe& recipe);

// The keys of a verb with type, default and help, grouped, for `snug VERB --help`.
std::string recipe_help(Verb verb);
// The same of these keys.
std::string recipe_help(std::span<const std::string_view> names);

}  // namespace snug::formats
