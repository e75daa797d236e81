// The one table of recipe keys: reading, defaults, checks, printing, help and suggestions all come
// from it. A key is added here and as a field of Recipe, nowhere else.
#pragma once

#include "formats/recipe/recipe.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace snug::formats {

// What a key holds. A choice travels as its index into RecipeKey::choices, a size as bytes.
enum class ValueType : uint8_t {
  text,
  integer,
  number,
  boolean,
  size,
  choice,
  texts,
  integers,
  numbers
};
using Value = std::variant<std::string, int64_t, double, bool, std::vector<std::string>,
                           std::vector<int64_t>, std::vector<double>>;

// The field of Recipe that a key sets. Without get and set the key is recognised but holds nothing.
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
  bool or_zero = false;   // 0 too, whatever is least
  bool is_steps = false;  // from 1 on whole numbers alone; below 1 a share of all steps
};

// `from` is read as `to`: under every name of the key, or only when it is written as the alias
// `name`. An alias that has words of its own is said to take those.
struct Translation {
  std::string_view from;
  std::string_view to;
  std::string_view name = "";
};

// A word users know for something that Snug does not do yet, and what to say about it.
struct NotBuilt {
  std::string_view word;
  std::string_view advice;
};

// Under the name `name` of a key a user writes several words, of which one is the key's value.
// `word` is another of them: it sets the key `key` to `value`, or means nothing when these are
// empty.
struct SideWord {
  std::string_view name;
  std::string_view word;
  std::string_view key = "";
  std::string_view value = "";
};

// What another value of a key means to a run that goes on from a checkpoint.
enum class OnResume : uint8_t {
  fixed,    // it is another run, which is refused
  free,     // the run goes on with other numbers, which is said
  ignored,  // it changes no number, or what it amounts to is compared
};

struct RecipeKey {
  std::string_view name = {};
  std::string_view group = {};             // heading in help and recipe.yaml
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
  bool pairs = false;        // of a list: its items are NAME=VALUE, or it is a map of these
  uint8_t verbs = 0;         // bits of 1 << Verb
  OnResume on_resume = OnResume::free;

  bool belongs_to(Verb verb) const { return (verbs >> static_cast<int>(verb) & 1) != 0; }
};

const std::vector<RecipeKey>& recipe_keys();
// Finds a key by name or alias; nullptr when unknown.
const RecipeKey* find_recipe_key(std::string_view name);
// What a user may write for a choice under this name of the key, for messages.
std::vector<std::string_view> words_under(const RecipeKey& key, std::string_view name);

// What the user wrote for a key: `name` is the key or an alias, `items` the scalar or the list.
struct Written {
  std::string name;
  std::vector<std::string> items;
  bool is_list = false;
  base::Location where;
  bool is_default = false;  // of a tool: what the recipe says wins
  bool is_blank = false;    // "key:" with nothing after it
  std::string said_as{};    // another tool's key that was written in place of `name`

  const std::string& shown() const { return said_as.empty() ? name : said_as; }
};

// What the user wrote, by the name of the key.
using WrittenByKey = std::map<std::string_view, Written>;

// Adds what the files say that `given` names as deepspeed and accelerate_config. The recipe and the
// command line win; it is a mistake where the recipe, or the other file, contradicts a file.
// Returns what to tell the user.
std::vector<std::string> add_config_files(WrittenByKey& given, base::Mistakes& mistakes);

// Takes the side words out of the written values, and adds the keys that they set.
std::vector<Written> without_side_words(std::vector<Written> all, base::Mistakes& mistakes);

// true, yes and on, and false, no and off, in any case; empty for another text.
std::optional<bool> parse_boolean(std::string_view text);

// The written value as the key's type, checked against its range and choices. Throws UserError with
// the location.
Value parse_value(const RecipeKey& key, const Written& written);

// Whether two values of a key mean the same: a list of names does in any order.
bool is_same_value(const Value& one, const Value& other);

// The value as a user would write it.
std::string value_text(const RecipeKey& key, const Value& value);

// The keys that a recipe was given alone: what a user would write for the same recipe.
std::string given_to_yaml(const Recipe& recipe);

// The keys of a verb with type, default and help, grouped, for `snug VERB --help`.
std::string recipe_help(Verb verb);

}  // namespace snug::formats
