// Converts between the words that a user writes and the typed values of keys: parse_value and
// value_text.
#include "base/byte_size.h"
#include "base/error.h"
#include "base/json_parser.h"
#include "base/lower_case.h"
#include "base/nearest.h"
#include "formats/recipe/data_entries.h"
#include "formats/recipe/recipe_keys.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace snug::formats {
namespace {

std::string range_text(const Range& range) {
  const bool has_least = range.least > std::numeric_limits<double>::lowest();
  const bool has_most = range.most < std::numeric_limits<double>::max();
  std::string text;
  if (has_least)
    text += range.least_excluded ? fmt::format(" above {}", range.least)
                                 : fmt::format(" of {} or more", range.least);
  if (has_most) {
    text += has_least ? " and" : "";
    text += range.most_excluded ? fmt::format(" less than {}", range.most)
                                : fmt::format(" at most {}", range.most);
  }
  return text;
}

// ", or auto": the words that are allowed in place of a number.
std::string or_words(const RecipeKey& key, std::string_view name) {
  std::string text;
  for (const Translation& translation : key.translations) {
    const bool is_word = !translation.from.empty() &&
                         std::isalpha(static_cast<unsigned char>(translation.from.front())) != 0;
    if (is_word && (translation.name.empty() || translation.name == name))
      text += fmt::format(", or {}", translation.from);
  }
  return text;
}

// What a value must be, for messages: "a whole number of 1 or more".
std::string expectation(const RecipeKey& key, std::string_view name) {
  switch (key.field.type) {
    case ValueType::text:
      return "one text";
    case ValueType::integer:
      return "a whole number" + range_text(key.range) + or_words(key, name);
    case ValueType::number:
      if (!key.range.counted.empty())
        return fmt::format("a whole number of {0}, or a share of all {0}, which is less than 1",
                           key.range.counted);
      return "a number" + range_text(key.range);
    case ValueType::boolean:
      return "true or false";
    case ValueType::size:
      return "a size such as 80GiB, 24GB, 512MiB or a number of bytes";
    case ValueType::choice: {
      const std::vector<std::string_view> words = words_under(key, name);
      return fmt::format("{}{}", words.size() > 1 ? "one of " : "", fmt::join(words, ", "));
    }
    case ValueType::texts:
      if (key.pairs) return "a map such as {prompt: question}, or a list such as [prompt=question]";
      return key.whole_texts ? R"(a text, or a list of texts such as ["###", "User:"])"
                             : "a list of names, such as [q_proj, v_proj]";
    case ValueType::integers:
      return "a list of whole numbers" + range_text(key.range);
    case ValueType::numbers:
      return "a list of numbers" + range_text(key.range);
    case ValueType::entries:
      return "a file, a folder, a pattern such as data/*.jsonl, a name of the hub (org/name), or a "
             "list of these";
  }
  return "";
}

[[noreturn]] void fail(const RecipeKey& key, const Written& written, const std::string& hint = "") {
  const std::string found = written.is_list
                                ? fmt::format("the list [{}]", fmt::join(written.items, ", "))
                                : fmt::format("'{}'", written.items.front());
  throw base::UserError(fmt::format("'{}' is {}; expected {}{}", written.shown(), found,
                                    expectation(key, written.name), hint),
                        written.where);
}

bool is_in(const Range& range, double value) {
  if (range.or_zero && value == 0) return true;
  if (!range.counted.empty() && value > 1 && value != std::floor(value)) return false;
  if (range.least_excluded ? !(value > range.least) : !(value >= range.least)) return false;
  return range.most_excluded ? value < range.most : value <= range.most;
}

// 500_000 is a number in YAML and in Python.
std::string without_separators(std::string_view text) {
  const auto is_digit = [&](size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) plain += text[i];
  return plain;
}

template <typename T>
std::optional<T> parse_number(std::string_view written) {
  const std::string plain = without_separators(written);
  std::string_view text = plain;
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// 1e3 and 1000.0 are also integers.
std::optional<int64_t> parse_whole(std::string_view text) {
  if (const auto value = parse_number<int64_t>(text)) return value;
  const auto value = parse_number<double>(text);
  if (!value || *value != std::floor(*value) || !(std::abs(*value) < 0x1p53)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

// The word of a choice or a boolean in the form that the key's tables use.
std::string canonical_word(const RecipeKey& key, const Written& written, const std::string& word) {
  for (const Translation& translation : key.translations) {
    const bool named = translation.name.empty() || translation.name == written.name;
    if (named && base::lower_case(word) == translation.from) return std::string(translation.to);
  }
  return word;
}

void refuse_what_is_not_built(const RecipeKey& key, const Written& written) {
  for (const std::string& item : written.items) {
    std::string word = base::lower_case(item);
    if (key.field.type == ValueType::boolean && parse_boolean(word) == true) word = "true";
    for (const NotBuilt& not_built : key.not_built)
      if (word == not_built.word)
        throw base::UserError(fmt::format("'{}: {}': {}", written.shown(), item, not_built.advice),
                              written.where);
  }
}

int64_t parse_choice(const RecipeKey& key, const Written& written, const std::string& word) {
  const auto found = std::find(key.choices.begin(), key.choices.end(), base::lower_case(word));
  if (found != key.choices.end()) return found - key.choices.begin();
  const std::vector<std::string_view> words = words_under(key, written.name);
  const auto nearest = base::nearest_slip(word, words);
  fail(key, written, nearest ? fmt::format(". Did you mean {}?", *nearest) : "");
}

bool separates(char letter) { return letter == ',' || letter == ' '; }

// The length of the item at the start of the text: up to a comma or space, or with its quotes. 0 if
// a quote is not closed, or is directly followed by more text.
size_t item_length(std::string_view text) {
  const char quote = text.front();
  if (quote != '"' && quote != '\'')
    return static_cast<size_t>(std::ranges::find_if(text, separates) - text.begin());
  const size_t end = text.find(quote, 1);
  if (end == std::string_view::npos) return 0;
  return end + 1 == text.size() || separates(text[end + 1]) ? end + 1 : 0;
}

// A single text unchanged, or a JSON list of texts.
std::vector<std::string> whole_texts(const RecipeKey& key, const Written& written) {
  const std::string& text = written.items.front();
  if (!text.starts_with("[\"")) return {text};
  const nlohmann::json list = base::parse_json_value(text, [&](const std::string& problem, size_t) {
    fail(key, written, "; the list is not JSON: " + problem);
  });
  std::vector<std::string> items;
  for (const nlohmann::json& item : list) {
    if (!item.is_string()) fail(key, written);
    items.push_back(item.get<std::string>());
  }
  return items;
}

std::vector<std::string> list_items(const RecipeKey& key, const Written& written) {
  if (written.is_list) return written.items;
  if (key.whole_texts) return whole_texts(key, written);
  auto items = items_in_text(written.items.front());
  if (!items) fail(key, written);
  return *std::move(items);
}

Value parse_entries(const RecipeKey& key, const Written& written) {
  std::vector<DataEntry> entries;
  for (const std::string& item : written.items) {
    DataEntry entry = parse_entry(item, written);
    if (!entry.name.empty() && key.name == "data")
      throw base::UserError(
          fmt::format("'{}' has a source with the name '{}', and only evaluation sets have names; "
                      "give sources as a list: data: [FILE, FILE], and what evaluates as eval_data",
                      written.shown(), entry.name),
          written.where);
    if (std::ranges::find(entries, entry) != entries.end())
      throw base::UserError(fmt::format("'{}' has the entry {} twice; to take its records twice, "
                                        "say {{path: {}, repeats: 2}}",
                                        written.shown(), item, entry.path),
                            written.where);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) fail(key, written);
  return entries;
}

Value parse_list(const RecipeKey& key, const Written& written) {
  std::vector<std::string> items = list_items(key, written);
  for (std::string& item : items) item = canonical_word(key, written, item);
  if (items.empty() && !key.empty_list.empty()) items.emplace_back(key.empty_list);
  if (key.field.type == ValueType::texts) {
    const bool has_empty = std::find(items.begin(), items.end(), "") != items.end();
    const bool has_twice = std::set<std::string>(items.begin(), items.end()).size() != items.size();
    if (items.empty() || has_empty) fail(key, written);
    if (has_twice) fail(key, written, ", each once");
    return items;
  }
  const auto numbers_by = [&](const auto& parse) {
    std::vector<typename decltype(parse(""))::value_type> numbers;
    for (const std::string& item : items) {
      const auto number = parse(item);
      if (!number || !is_in(key.range, static_cast<double>(*number))) fail(key, written);
      numbers.push_back(*number);
    }
    return numbers;
  };
  if (key.field.type == ValueType::numbers) return numbers_by(parse_number<double>);
  return numbers_by(parse_whole);
}

Value parse_scalar(const RecipeKey& key, const Written& written) {
  const std::string text = canonical_word(key, written, written.items.front());
  switch (key.field.type) {
    case ValueType::integer:
      if (const auto value = parse_whole(text))
        if (is_in(key.range, static_cast<double>(*value))) return *value;
      fail(key, written);
    case ValueType::number:
      if (const auto value = parse_number<double>(text))
        if (std::isfinite(*value) && is_in(key.range, *value)) return *value;
      fail(key, written);
    case ValueType::boolean:
      if (const auto value = parse_boolean(text)) return *value;
      fail(key, written);
    case ValueType::size:
      if (const auto value = base::parse_byte_size(text))
        if (is_in(key.range, static_cast<double>(*value))) return *value;
      fail(key, written);
    case ValueType::choice:
      return parse_choice(key, written, text);
    default:
      return text;
  }
}

// The shortest text that reads back as the same number.
std::string number_text(double value) { return fmt::format("{}", value); }

}  // namespace

std::optional<std::vector<std::string>> items_in_text(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> items;
  while (!text.empty()) {
    if (separates(text.front())) {
      text.remove_prefix(1);
      continue;
    }
    const size_t length = item_length(text);
    if (length == 0) return std::nullopt;
    const bool quoted = text.front() == '"' || text.front() == '\'';
    items.emplace_back(quoted ? text.substr(1, length - 2) : text.substr(0, length));
    text.remove_prefix(length);
  }
  return items;
}

std::optional<bool> parse_boolean(std::string_view text) {
  const std::string word = base::lower_case(text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::vector<std::string_view> words_under(const RecipeKey& key, std::string_view name) {
  std::vector<std::string_view> words;
  for (const Translation& translation : key.translations)
    if (!translation.name.empty() && translation.name == name && !translation.from.empty())
      words.push_back(translation.from);
  return words.empty() ? key.choices : words;
}

Value parse_value(const RecipeKey& key, const Written& written) {
  refuse_what_is_not_built(key, written);
  if (key.field.type == ValueType::entries) return parse_entries(key, written);
  const bool takes_list = key.field.type == ValueType::texts ||
                          key.field.type == ValueType::integers ||
                          key.field.type == ValueType::numbers;
  if (takes_list) return parse_list(key, written);
  if (written.is_list) fail(key, written);
  return parse_scalar(key, written);
}

bool is_same_value(const Value& one, const Value& other) {
  const auto* names = std::get_if<std::vector<std::string>>(&one);
  const auto* others = std::get_if<std::vector<std::string>>(&other);
  if (names == nullptr || others == nullptr) return one == other;
  return std::ranges::is_permutation(*names, *others);
}

std::string value_text(const RecipeKey& key, const Value& value) {
  switch (key.field.type) {
    case ValueType::text:
      return std::get<std::string>(value);
    case ValueType::integer:
      return fmt::format("{}", std::get<int64_t>(value));
    case ValueType::number:
      return number_text(std::get<double>(value));
    case ValueType::boolean:
      return std::get<bool>(value) ? "true" : "false";
    case ValueType::size:
      return base::exact_byte_size(std::get<int64_t>(value));
    case ValueType::choice:
      return std::string(key.choices.at(static_cast<size_t>(std::get<int64_t>(value))));
    case ValueType::texts: {
      const auto& items = std::get<std::vector<std::string>>(value);
      if (items.empty()) return "";
      if (items.size() == 1) return items.front();
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    case ValueType::integers:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(value), ", "));
    case ValueType::numbers:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<double>>(value), ", "));
    case ValueType::entries:
      return entries_text(std::get<std::vector<DataEntry>>(value));
  }
  return "";
}

}  // namespace snug::formats
