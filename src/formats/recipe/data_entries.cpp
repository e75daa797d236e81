#include "formats/recipe/data_entries.h"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"

namespace snug::formats {
namespace {

// A key of an entry: what its value may be, and the field that it sets.
struct EntryKey {
  RecipeKey key;
  void (*set)(DataEntry&, const Value&) = nullptr;
};

template <auto member>
void set_member(DataEntry& entry, const Value& value) {
  using T = std::remove_cvref_t<decltype(entry.*member)>;
  if constexpr (std::is_enum_v<T>)
    entry.*member = static_cast<T>(std::get<int64_t>(value));
  else
    entry.*member = std::get<T>(value);
}

template <auto member>
EntryKey own_key(std::string_view name, ValueType type, Range range = {},
                 std::vector<std::string_view> aliases = {}) {
  EntryKey entry{.key = {}, .set = set_member<member>};
  entry.key.name = name;
  entry.key.field.type = type;
  entry.key.range = range;
  entry.key.aliases = std::move(aliases);
  return entry;
}

// A key that the recipe has for all its data, too.
template <auto member>
EntryKey shared_key(std::string_view name) {
  return {.key = *find_recipe_key(name), .set = set_member<member>};
}

const std::vector<EntryKey>& entry_keys() {
  constexpr Range kTimes{.least = 0, .most = 1e6, .least_excluded = true};
  constexpr Range kRecords{.least = 1, .most = 1e12};
  static const std::vector<EntryKey> keys{
      own_key<&DataEntry::path>("path", ValueType::text),
      own_key<&DataEntry::config>("config", ValueType::text, {}, {"name", "subset"}),
      own_key<&DataEntry::split>("split", ValueType::text),
      own_key<&DataEntry::name>("as", ValueType::text),
      own_key<&DataEntry::weight>("weight", ValueType::number, kTimes),
      own_key<&DataEntry::repeats>("repeats", ValueType::number, kTimes),
      own_key<&DataEntry::limit>("limit", ValueType::integer, kRecords),
      shared_key<&DataEntry::data_format>("data_format"),
      shared_key<&DataEntry::fields>("fields"),
      shared_key<&DataEntry::roles>("roles"),
      shared_key<&DataEntry::ignore_fields>("ignore_fields")};
  return keys;
}

const EntryKey* find_entry_key(std::string_view name) {
  for (const EntryKey& each : entry_keys())
    if (each.key.name == name ||
        std::ranges::find(each.key.aliases, name) != each.key.aliases.end())
      return &each;
  return nullptr;
}

std::string names_of_keys() {
  std::vector<std::string_view> names;
  for (const EntryKey& each : entry_keys()) names.push_back(each.key.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string flow_text(const YAML::Node& node) {
  YAML::Emitter emitter;
  emitter.SetMapFormat(YAML::Flow);
  emitter.SetSeqFormat(YAML::Flow);
  emitter << node;
  return emitter.c_str();
}

// The map that a text writes; nothing where it writes none.
std::optional<YAML::Node> map_in(const std::string& text) {
  if (!text.starts_with('{')) return std::nullopt;
  try {
    YAML::Node node = YAML::Load(text);
    if (node.IsMap()) return node;
  } catch (const YAML::Exception&) {
    // Text that is no YAML is a path, and is reported as one that is not there.
  }
  return std::nullopt;
}

// An entry of a value, or of a value's map of names.
void add_item(const YAML::Node& node, const std::string& name, std::vector<std::string>& items) {
  if (node.IsSequence()) {
    for (const YAML::Node& each : node) add_item(each, name, items);
    return;
  }
  if (name.empty() && node.IsScalar()) {
    items.push_back(node.Scalar());
    return;
  }
  YAML::Node entry;
  if (node.IsMap())
    entry = YAML::Clone(node);
  else
    entry["path"] = node;
  if (!name.empty()) entry["as"] = name;
  items.push_back(flow_text(entry));
}

// The texts that stand for a name of `fields`, as one (recipe_text.cpp).
std::string list_text(const YAML::Node& list) {
  std::vector<std::string> texts;
  for (const YAML::Node& each : list) texts.push_back(each.as<std::string>(""));
  return nlohmann::json(texts).dump();
}

// A value of an entry's key as a recipe would write it.
Written written_value(const std::string& name, const YAML::Node& node, const Written& of) {
  Written value{fmt::format("{}.{}", of.shown(), name), {}, false, of.where};
  const auto add = [&](const YAML::Node& each, const std::string& before) {
    const bool is_list = each.IsSequence() && !before.empty();
    if (!each.IsScalar() && !is_list)
      throw base::UserError(fmt::format("'{}' holds a nested value", value.name), of.where);
    value.items.push_back(before + (is_list ? list_text(each) : each.Scalar()));
  };
  value.is_list = node.IsMap() || node.IsSequence();
  if (node.IsMap())
    for (const auto& each : node) add(each.second, each.first.Scalar() + "=");
  else if (node.IsSequence())
    for (const YAML::Node& each : node) add(each, "");
  else if (!node.IsNull())
    add(node, "");
  return value;
}

void emit(const DataEntry& entry, YAML::Emitter& text) {
  const DataEntry plain{.path = entry.path};
  if (entry == plain && !entry.path.starts_with('{')) {
    text << entry.path;
    return;
  }
  const auto add = [&](const char* key, const auto& value, const auto& usual) {
    if (value != usual) text << YAML::Key << key << YAML::Value << value;
  };
  text << YAML::Flow << YAML::BeginMap << YAML::Key << "path" << YAML::Value << entry.path;
  add("config", entry.config, plain.config);
  add("split", entry.split, plain.split);
  add("as", entry.name, plain.name);
  add("weight", fmt::format("{}", entry.weight), fmt::format("{}", plain.weight));
  add("repeats", fmt::format("{}", entry.repeats), fmt::format("{}", plain.repeats));
  add("limit", entry.limit, plain.limit);
  add("data_format", std::string(base::word_of(entry.data_format)),
      std::string(base::word_of(plain.data_format)));
  add("fields", entry.fields, plain.fields);
  add("roles", entry.roles, plain.roles);
  add("ignore_fields", entry.ignore_fields, plain.ignore_fields);
  text << YAML::EndMap;
}

}  // namespace

std::vector<std::string> entry_items(const YAML::Node& value) {
  std::vector<std::string> items;
  if (value.IsMap() && !value["path"]) {
    // A map of a recipe's keys without a path is told of as such, and not as names.
    const bool is_of_keys = std::ranges::all_of(
        value, [](const auto& each) { return find_entry_key(each.first.Scalar()) != nullptr; });
    if (!is_of_keys) {
      for (const auto& each : value) add_item(each.second, each.first.Scalar(), items);
      return items;
    }
  }
  if (!value.IsNull()) add_item(value, "", items);
  return items;
}

std::string key_twice(const YAML::Node& value) {
  std::set<std::string> names;
  std::string twice;
  for (const auto& each : value) {
    if (value.IsMap() && each.first.IsScalar() && !names.insert(each.first.Scalar()).second)
      return each.first.Scalar();
    const YAML::Node& below = value.IsMap() ? each.second : static_cast<const YAML::Node&>(each);
    if (twice.empty() && !below.IsScalar() && !below.IsNull()) twice = key_twice(below);
  }
  return twice;
}

bool is_entry_key(std::string_view name) { return find_entry_key(name) != nullptr; }

DataEntry parse_entry(const std::string& item, const Written& written) {
  const auto map = map_in(item);
  if (!map && item.starts_with('{'))
    throw base::UserError(
        fmt::format("'{}' is {}, which is no map that YAML reads: is a brace not closed, or does a "
                    "value such as \"train[:10]\" need quotes?",
                    written.shown(), item),
        written.where);
  if (!map) return {.path = item};
  if (const std::string twice = key_twice(*map); !twice.empty())
    throw base::UserError(
        fmt::format(
            "'{}' has an entry with the key '{}' twice: {}; in a list each entry has a dash "
            "of its own",
            written.shown(), twice, item),
        written.where);
  DataEntry entry;
  for (const auto& each : *map) {
    const std::string name = each.first.Scalar();
    const EntryKey* key = find_entry_key(name);
    if (key == nullptr) {
      std::vector<std::string_view> names;
      for (const EntryKey& known : entry_keys()) names.push_back(known.key.name);
      const auto nearest = base::nearest_slip(name, names);
      throw base::UserError(
          fmt::format("'{}' has an entry with the unknown key '{}'; {}", written.shown(), name,
                      nearest ? fmt::format("did you mean '{}'?", *nearest)
                              : fmt::format("an entry has {}", names_of_keys())),
          written.where);
    }
    const Written value = written_value(name, each.second, written);
    if (!value.items.empty() || value.is_list) key->set(entry, parse_value(key->key, value));
  }
  if (entry.path.empty() && entry.name.find(':') != std::string::npos)
    throw base::UserError(
        fmt::format("'{}' has an entry without a path: YAML has a space after the colon, as in "
                    "{{path: FILE}}",
                    written.shown()),
        written.where);
  if (entry.path.empty())
    throw base::UserError(
        fmt::format("'{0}' has an entry without a path: {1}; {0}.KEY=VALUE on the command line "
                    "changes a recipe's entry where it has a single one",
                    written.shown(), item),
        written.where);
  if (entry.weight > 0 && entry.repeats != 1)
    throw base::UserError(fmt::format("'{}' has both weight and repeats for {}; keep one",
                                      written.shown(), entry.path),
                          written.where);
  return entry;
}

std::string with_keys_of(const std::string& item, const std::string& keys) {
  const auto changes = map_in(keys);
  if (!changes || changes->size() == 0 || (*changes)["path"]) return "";
  YAML::Node entry;
  if (const auto map = map_in(item))
    entry = *map;
  else
    entry["path"] = item;
  for (const auto& each : *changes) {
    YAML::Node value = entry[each.first.Scalar()];
    if (value.IsMap() && each.second.IsMap())
      for (const auto& pair : each.second) value[pair.first.Scalar()] = pair.second;
    else
      entry[each.first.Scalar()] = each.second;
  }
  return flow_text(entry);
}

std::string entry_text(const DataEntry& entry) { return entries_text({entry}); }

std::string entries_text(const std::vector<DataEntry>& entries) {
  if (entries.empty()) return "";
  YAML::Emitter text;
  if (entries.size() == 1) {
    emit(entries.front(), text);
    return text.c_str();
  }
  text << YAML::Flow << YAML::BeginSeq;
  for (const DataEntry& entry : entries) emit(entry, text);
  text << YAML::EndSeq;
  return text.c_str();
}

}  // namespace snug::formats
