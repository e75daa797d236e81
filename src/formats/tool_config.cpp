#include "formats/tool_config.h"

#include "base/lower_case.h"
#include "base/nearest.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace snug::formats {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxSettings = 10'000;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

class Flattening {
 public:
  explicit Flattening(const std::string& file) : file_(file) {}

  void add(const json& value, const std::string& path, int depth) {
    if (depth > kMaxDepth || all.size() > kMaxSettings)
      fail_in_file(file_, path, "is too large or nests too deeply for a file of this kind");
    if (value.is_object()) {
      for (const auto& [key, child] : value.items())
        add(child, path.empty() ? key : path + "." + key, depth + 1);
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i)
        add(value[i], fmt::format("{}[{}]", path, i), depth + 1);
    } else if (!value.is_null()) {
      all.push_back({path, text_of(value)});
    }
  }

  std::vector<ToolSetting> all;

 private:
  const std::string& file_;
};

// YAML's words for a truth value count as one.
std::string plain_word(std::string_view text) {
  if (const std::optional<bool> truth = parse_boolean(text)) return *truth ? "true" : "false";
  return base::lower_case(text);
}

bool fits(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return path == pattern;
  pattern.remove_suffix(1);
  return path.starts_with(pattern);
}

const ToolKey& key_for(const ToolSetting& setting, const std::vector<ToolKey>& keys,
                       const std::string& file) {
  std::vector<std::string_view> names;
  for (const ToolKey& key : keys) {
    if (fits(key.path, setting.path)) return key;
    if (!key.path.ends_with('*')) names.push_back(key.path);
  }
  const auto nearest = base::nearest_name(setting.path, names);
  fail_in_file(file, setting.path,
               nearest ? fmt::format("is unknown; did you mean '{}'?", *nearest)
                       : "is a key that Snug does not know; take it out of the file");
}

// What the recipe's key becomes; empty: nothing.
std::string meaning_of(const ToolSetting& setting, const ToolKey& key, const std::string& file) {
  if (key.words.empty()) return setting.text;
  std::vector<std::string_view> expected;
  for (const ToolWord& word : key.words) {
    if (plain_word(word.from) == plain_word(setting.text)) return std::string(word.to);
    expected.push_back(word.from);
  }
  fail_in_file(
      file, setting.path,
      fmt::format("is '{}', but Snug takes {} only{}{}", setting.text, fmt::join(expected, " or "),
                  key.reason.empty() ? "" : ": ", key.reason));
}

Value parsed(const Written& written) {
  return parse_value(*find_recipe_key(written.name), written);
}

}  // namespace

void fail_in_file(const std::string& file, std::string_view path, const std::string& problem) {
  throw base::UserError(problem, {fmt::format("{}: {}", file, path), 0, 0});
}

std::vector<ToolSetting> settings_in(const json& document, const std::string& file) {
  Flattening flattening(file);
  flattening.add(document, "", 0);
  return std::move(flattening.all);
}

const std::string* find_setting(const std::vector<ToolSetting>& settings, std::string_view path) {
  for (const ToolSetting& setting : settings)
    if (setting.path == path && setting.text != "auto") return &setting.text;
  return nullptr;
}

int64_t count_in(const std::vector<ToolSetting>& settings, std::string_view path,
                 const std::string& file) {
  const std::string& text = *find_setting(settings, path);
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 1)
    fail_in_file(file, path, fmt::format("is '{}'; expected a whole number of 1 or more", text));
  return value;
}

ToolConfig translate(const std::vector<ToolSetting>& settings, const std::vector<ToolKey>& keys,
                     const std::string& file) {
  ToolConfig config;
  std::map<std::string_view, std::vector<std::string>> without_meaning;
  for (const ToolSetting& setting : settings) {
    const ToolKey& key = key_for(setting, keys, file);
    if (setting.text == "auto") continue;
    const std::string meaning = meaning_of(setting, key, file);
    if (key.key.empty()) {
      if (key.words.empty() && !key.reason.empty())
        without_meaning[key.reason].push_back(setting.path);
    } else if (!meaning.empty()) {
      add_setting(config, {std::string(key.key),
                           {meaning},
                           false,
                           {fmt::format("{}: {}", file, setting.path), 0, 0}});
    }
  }
  for (const auto& [reason, paths] : without_meaning)
    config.notes.push_back(
        fmt::format("{}: {}: not used: {}", file, fmt::join(paths, ", "), reason));
  return config;
}

void add_setting(ToolConfig& config, Written written) {
  const RecipeKey* key = find_recipe_key(written.name);
  SNUG_CHECK(key != nullptr, "no key {}", written.name);
  const Value value = parsed(written);
  for (const Written& earlier : config.settings) {
    if (find_recipe_key(earlier.name) != key) continue;
    if (parsed(earlier) != value)
      throw base::UserError(
          fmt::format("says {}={}, and {} says {}", key->name, written.items.front(),
                      earlier.where.file, earlier.items.front()),
          written.where);
    return;
  }
  config.settings.push_back(std::move(written));
}

}  // namespace snug::formats
