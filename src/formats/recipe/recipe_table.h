// Building blocks of the table in recipe_keys.cpp and similar files: one statement per key, each
// bound to its field of Recipe.
#pragma once

#include "formats/recipe/recipe_keys.h"

#include "base/error.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace snug::formats {

// Maxima that keys of several groups share.
inline constexpr double kMaxTokens = 0x1p30;      // of a row, as of a model's positions
inline constexpr double kMaxIds = 0x1p31 - 1;     // of a vocabulary
inline constexpr double kMaxSequences = 1 << 24;  // in parallel
inline constexpr double kMaxCount = 1e12;         // of steps and checkpoints

// Which verbs use a key, and limits of its number.
constexpr uint8_t bit(Verb verb) { return static_cast<uint8_t>(1 << static_cast<int>(verb)); }
inline constexpr uint8_t kTraining = bit(Verb::train) | bit(Verb::plan);
inline constexpr uint8_t kGenerate = bit(Verb::generate);
inline constexpr uint8_t kScore = bit(Verb::score);
inline constexpr uint8_t kEvaluate = bit(Verb::evaluate);
inline constexpr uint8_t kMerge = bit(Verb::merge);
inline constexpr uint8_t kServe = bit(Verb::serve);
inline constexpr uint8_t kEverywhere = kTraining | kGenerate | kScore | kEvaluate | kMerge | kServe;

constexpr Range at_least(double least) { return {.least = least}; }
inline constexpr double kMaxFloat = 1e30;  // fits f32, even multiplied by 10^8
inline constexpr Range kFraction{.least = 0, .most = 1};
inline constexpr Range kBelowOne{.least = 0, .most = 1, .most_excluded = true};
inline constexpr Range kStepsOrShare{.least = 0, .most = kMaxCount, .counted = "steps"};

// The row that was just added, to be refined by calls. It is invalid after the next row is added.
class KeyRow {
 public:
  explicit KeyRow(RecipeKey& key) : key_(key) {}

  KeyRow& computed(std::string_view in_words) {
    key_.computed_default = in_words;
    return *this;
  }
  KeyRow& aliases(std::vector<std::string_view> names) {
    key_.aliases = std::move(names);
    return *this;
  }
  KeyRow& choices(std::vector<std::string_view> words) {
    key_.choices = std::move(words);
    return *this;
  }
  KeyRow& range(Range range) {
    key_.range = range;
    return *this;
  }
  KeyRow& translations(std::vector<Translation> list) {
    key_.translations = std::move(list);
    return *this;
  }
  KeyRow& not_built(const std::vector<std::string_view>& words, std::string_view advice) {
    for (const std::string_view word : words) key_.not_built.push_back({word, advice});
    return *this;
  }
  KeyRow& side_words(std::vector<SideWord> list) {
    key_.side_words = std::move(list);
    return *this;
  }
  KeyRow& pairs() {
    key_.pairs = true;
    return *this;
  }
  KeyRow& whole_texts() {
    key_.whole_texts = true;
    return *this;
  }
  KeyRow& empty_list(std::string_view word) {
    key_.empty_list = word;
    return *this;
  }
  KeyRow& verbs(uint8_t bits) {
    key_.verbs = bits;
    return *this;
  }
  KeyRow& on_resume(OnResume what) {
    key_.on_resume = what;
    return *this;
  }

 private:
  RecipeKey& key_;
};

class KeyTable {
 public:
  // Sets the heading, the verbs and the meaning on resuming for the keys that are added next; a row
  // may override them.
  void group(std::string_view heading, uint8_t verbs, OnResume on_resume) {
    heading_ = heading;
    verbs_ = verbs;
    on_resume_ = on_resume;
  }

  template <auto member>
  KeyRow add(std::string_view name, std::string_view default_text, std::string_view help) {
    RecipeKey key;
    key.name = name;
    key.group = heading_;
    key.default_text = default_text;
    key.help = help;
    key.field = bind<member>();
    key.verbs = verbs_;
    key.on_resume = on_resume_;
    return KeyRow(keys_.emplace_back(std::move(key)));
  }

  // Adds a choice, whose words are those of the enumeration.
  template <auto member, typename Enum>
  requires std::is_enum_v<Enum> KeyRow add(std::string_view name, Enum default_value,
                                           std::string_view help) {
    return add<member>(name, base::word_of(default_value), help).choices(base::all_words<Enum>());
  }

  // Adds a number of bytes.
  template <auto member>
  KeyRow add_size(std::string_view name, std::string_view default_text, std::string_view help) {
    const KeyRow row = add<member>(name, default_text, help);
    keys_.back().field.type = ValueType::size;
    return row;
  }

  // Adds a key that is recognised but has no value.
  KeyRow recognise(std::string_view name, ValueType type) {
    RecipeKey key;
    key.name = name;
    key.field.type = type;
    return KeyRow(keys_.emplace_back(std::move(key)));
  }

  // Adds the name of a file whose values are taken over into other keys; it has no value of its
  // own.
  KeyRow add_file(std::string_view name, std::string_view help) {
    RecipeKey key;
    key.name = name;
    key.group = heading_;
    key.help = help;
    key.verbs = verbs_;
    key.on_resume = on_resume_;
    return KeyRow(keys_.emplace_back(std::move(key)));
  }

  std::vector<RecipeKey> take() { return std::move(keys_); }

 private:
  template <typename T>
  static constexpr ValueType type_of() {
    if constexpr (std::is_enum_v<T>) return ValueType::choice;
    if constexpr (std::is_same_v<T, std::optional<bool>>) return ValueType::choice;
    if constexpr (std::is_same_v<T, int64_t>) return ValueType::integer;
    if constexpr (std::is_same_v<T, double>) return ValueType::number;
    if constexpr (std::is_same_v<T, bool>) return ValueType::boolean;
    if constexpr (std::is_same_v<T, std::vector<std::string>>) return ValueType::texts;
    if constexpr (std::is_same_v<T, std::vector<int64_t>>) return ValueType::integers;
    if constexpr (std::is_same_v<T, std::vector<double>>) return ValueType::numbers;
    if constexpr (std::is_same_v<T, std::vector<DataEntry>>) return ValueType::entries;
    return ValueType::text;
  }

  template <auto member>
  static RecipeField bind() {
    using T = std::remove_cvref_t<decltype(std::declval<Recipe>().*member)>;
    RecipeField field;
    field.type = type_of<T>();
    if constexpr (std::is_enum_v<T>) {
      // A word's place in the list is not its value where a value before it has no word.
      field.get = [](const Recipe& recipe) -> Value {
        const auto& words = base::kWordsOf<T>;
        const auto word = std::ranges::find(words, recipe.*member, &base::Word<T>::value);
        SNUG_CHECK(word != words.end(), "a choice without a word");
        return static_cast<int64_t>(word - words.begin());
      };
      field.set = [](Recipe& recipe, const Value& value) {
        recipe.*member = base::kWordsOf<T>.at(static_cast<size_t>(std::get<int64_t>(value))).value;
      };
    } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
      // The words are those for nothing, false and true.
      field.get = [](const Recipe& recipe) -> Value {
        const T& said = recipe.*member;
        return said ? int64_t{*said} + 1 : int64_t{0};
      };
      field.set = [](Recipe& recipe, const Value& value) {
        const int64_t word = std::get<int64_t>(value);
        recipe.*member = word == 0 ? T{} : T{word == 2};
      };
    } else {
      field.get = [](const Recipe& recipe) -> Value { return recipe.*member; };
      field.set = [](Recipe& recipe, const Value& value) { recipe.*member = std::get<T>(value); };
    }
    return field;
  }

  std::vector<RecipeKey> keys_;
  std::string_view heading_;
  uint8_t verbs_ = 0;
  OnResume on_resume_ = OnResume::free;
};

// The groups that have files of their own.
void add_adapter_keys(KeyTable& table);
void add_objective_keys(KeyTable& table);
void add_rollout_keys(KeyTable& table);
void add_reward_keys(KeyTable& table);
void add_schedule_keys(KeyTable& table);
void add_optimizer_keys(KeyTable& table);
void add_loss_scale_keys(KeyTable& table);
void add_device_keys(KeyTable& table);
void add_evaluation_keys(KeyTable& table);
void add_generation_keys(KeyTable& table);
void add_merge_keys(KeyTable& table);
void add_serve_keys(KeyTable& table);

}  // namespace snug::formats
