// Prints recipe.yaml and the help of the verbs, both from the table of keys.
#include "formats/recipe/data_entries.h"
#include "formats/recipe/recipe.h"
#include "formats/recipe/recipe_keys.h"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace snug::formats {
namespace {

std::string yaml_scalar(const std::string& text) {
  YAML::Emitter emitter;
  emitter << text;
  return emitter.c_str();
}

std::string yaml_value(const RecipeKey& key, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return text->empty() ? "null" : yaml_scalar(*text);
  if (const auto* entries = std::get_if<std::vector<DataEntry>>(&value))
    return entries->empty() ? "null" : entries_text(*entries);
  // An empty list was not given: null says so, which [] does not.
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  if ((integers != nullptr && integers->empty()) || (numbers != nullptr && numbers->empty()))
    return "null";
  const auto* names = std::get_if<std::vector<std::string>>(&value);
  if (names == nullptr) return value_text(key, value);
  if (names->empty()) return "null";
  // A single text with one of these characters would be read back as a list.
  if (names->size() == 1 && names->front().find_first_of("[, ") == std::string::npos)
    return yaml_scalar(names->front());
  YAML::Emitter emitter;
  emitter << YAML::Flow << *names;
  return emitter.c_str();
}

std::string type_text(const RecipeKey& key) {
  switch (key.field.type) {
    case ValueType::text:
      return "text";
    case ValueType::integer:
      return "whole number";
    case ValueType::number:
      return "number";
    case ValueType::boolean:
      return "true|false";
    case ValueType::size:
      return "size";
    case ValueType::choice:
      return fmt::format("{}", fmt::join(key.choices, "|"));
    case ValueType::texts:
    case ValueType::integers:
    case ValueType::numbers:
      return "list";
    case ValueType::entries:
      return "path or list";
  }
  return "";
}

std::string default_note(const RecipeKey& key) {
  const std::string_view text = key.default_text.empty() ? key.computed_default : key.default_text;
  return text.empty() ? "" : fmt::format(" (default {})", text);
}

// Also of a key whose default is computed, where the value switches something off.
bool is_default(const RecipeKey& key, const Value& value) {
  const std::string shown = value_text(key, value);
  if (key.default_text.empty()) return shown == "false" || shown == "0";
  return is_same_value(value, parse_value(key, {.name = std::string(key.name),
                                                .items = {std::string(key.default_text)},
                                                .where = {}}));
}

}  // namespace

std::string to_yaml(const Recipe& recipe, Verb verb) {
  std::string text;
  std::string_view group;
  for (const RecipeKey& key : recipe_keys()) {
    if (key.field.get == nullptr || !key.belongs_to(verb)) continue;
    if (key.group != group) text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", key.group);
    group = key.group;
    text += fmt::format("{}: {}\n", key.name, yaml_value(key, key.field.get(recipe)));
  }
  return text;
}

std::string given_to_yaml(const Recipe& recipe) {
  std::string text;
  for (const RecipeKey& key : recipe_keys())
    if (key.field.get != nullptr && recipe.is_given(key.name))
      text += fmt::format("{}: {}\n", key.name, yaml_value(key, key.field.get(recipe)));
  return text;
}

std::string changed_to_yaml(const Recipe& recipe, Verb verb) {
  std::string text;
  for (const RecipeKey& key : recipe_keys()) {
    if (key.field.get == nullptr || !key.belongs_to(verb)) continue;
    const Value value = key.field.get(recipe);
    const std::string shown = yaml_value(key, value);
    if (shown == "null" || (key.name != "method" && is_default(key, value))) continue;
    text += fmt::format("{}: {}\n", key.name, shown);
  }
  return text;
}

bool holds_default(const Recipe& recipe, std::string_view name) {
  for (const RecipeKey& key : recipe_keys())
    if (key.name == name && key.field.get != nullptr)
      return value_text(key, key.field.get(recipe)) == key.default_text;
  return false;
}

std::string recipe_help(Verb verb) {
  std::vector<std::string_view> names;
  for (const RecipeKey& key : recipe_keys())
    if (key.belongs_to(verb)) names.push_back(key.name);
  return recipe_help(names);
}

std::string recipe_help(std::span<const std::string_view> names) {
  std::string text;
  std::string_view group;
  for (const RecipeKey& key : recipe_keys()) {
    if (std::ranges::find(names, key.name) == names.end()) continue;
    if (key.group != group) text += fmt::format("{}{}:\n", text.empty() ? "" : "\n", key.group);
    group = key.group;
    text += fmt::format("  {:<28} {}\n", key.name, type_text(key));
    text += fmt::format("      {}{}\n", key.help, default_note(key));
    if (!key.aliases.empty()) text += fmt::format("      also: {}\n", fmt::join(key.aliases, ", "));
  }
  return text;
}

}  // namespace snug::formats
