#include "formats/foreign/tool_config.h"

#include "base/lower_case.h"
#include "base/nearest.h"
#include "formats/foreign/tool_file_places.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

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
  Flattening(std::string_view text, const std::string& file)
      : file_(file), places_(tool_file_places(text, file)) {}

  void add(const json& value, const std::string& path, int depth) {
    if (depth > kMaxDepth || all.size() > kMaxSettings)
      throw base::UserError("is too large or nests too deeply for a file of this kind",
                            place_in(file_, path));
    if (value.is_object()) {
      for (const auto& [key, child] : value.items())
        add(child, path.empty() ? key : path + "." + key, depth + 1);
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i)
        add(value[i], fmt::format("{}[{}]", path, i), depth + 1);
    } else if (!value.is_null()) {
      all.push_back({path, {text_of(value)}, false, place(path)});
    }
  }

  std::vector<Written> all;

 private:
  // Line and column are printed before the path, so that a message has both.
  base::Location place(const std::string& path) const {
    const auto found = places_.find(path);
    return found == places_.end() ? place_in(file_, path)
                                  : base::Location{base::to_string(found->second) + path, 0, 0};
  }

  const std::string& file_;
  const std::map<std::string, base::Location> places_;
};

// Different words of YAML for the same truth value count as equal.
std::string plain_word(std::string_view text) {
  if (const std::optional<bool> truth = parse_boolean(text)) return *truth ? "true" : "false";
  return base::lower_case(text);
}

bool fits(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return path == pattern;
  pattern.remove_suffix(1);
  return path.starts_with(pattern);
}

// Whether the file's value is that of the row: words in upper or lower case, numbers by value.
bool is_same(std::string_view said, std::string_view word) {
  if (plain_word(said) == plain_word(word)) return true;
  const auto number = [](std::string_view text) -> std::optional<double> {
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return value;
  };
  const std::optional<double> value = number(said);
  return value && value == number(word);
}

// Whether the key is a recipe's, which has a line number or comes from the command line.
bool is_of_recipe(const Written& written) {
  return written.where.line > 0 || written.where.file == kCommandLine;
}

class Translating {
 public:
  Translating(const std::vector<ToolKey>& keys, const std::string& file)
      : keys_(keys), file_(file) {}

  void take(const Written& written) {
    const ToolKey* key = find_tool_key(keys_, written.name);
    if (key == nullptr) return fail(written, unknown(written));
    if (written.items.empty() && key->refuses_none)
      return fail(written, fmt::format("has no value: {}", key->reason));
    if (written.items.empty()) return pass_over(written, "has no value");
    const std::string text = fmt::format("{}", fmt::join(written.items, ", "));
    const bool only_noted = key->key.empty() && key->words.empty();
    if (text == "auto" && !only_noted) return;
    if (only_noted) {
      if (!key->reason.empty()) pass_over(written, key->reason);
      return;
    }
    if (key->words.empty()) return set(*key, written, written.items, written.is_list);
    for (const ToolWord& word : key->words) {
      if (!is_same(text, word.from)) continue;
      if (!word.to.empty() && !key->key.empty())
        set(*key, written, {std::string(word.to)}, false);
      else if (is_of_recipe(written))
        pass_over(written, word.note.empty() ? "this is so here in any case" : word.note);
      return;
    }
    if (key->key.empty() && are_all_known(*key, written.items))
      return pass_over(written, "this is so here in any case");
    refuse(*key, written, text);
  }

  ToolConfig finish() {
    for (const auto& [reason, names] : passed_over_)
      config_.notes.push_back(
          fmt::format("{}: {}: not used: {}", file_, fmt::join(names, ", "), reason));
    return std::move(config_);
  }

 private:
  std::string unknown(const Written& written) const {
    std::vector<std::string_view> names;
    for (const ToolKey& key : keys_)
      if (!key.path.ends_with('*')) names.push_back(key.path);
    const auto nearest = base::nearest_slip(written.name, names);
    return nearest ? fmt::format("is unknown; did you mean '{}'?", *nearest)
                   : "is a key that Snug does not know; take it out of the file";
  }

  // A group of keys that is refused as a whole is reported only once.
  void refuse(const ToolKey& key, const Written& written, const std::string& text) {
    const bool is_never = key.words.size() == 1 && key.words.front().from == kNever.front().from;
    if (is_never && is_of_recipe(written) && key.path.ends_with('*')) {
      const std::string root = written.name.substr(0, written.name.find('.'));
      if (!refused_.insert(root).second) return;
      return config_.mistakes.add(fmt::format("'{}': {}", root, key.reason), written.where);
    }
    if (is_never) return fail(written, fmt::format("is '{}': {}", text, key.reason));
    std::vector<std::string_view> expected;
    for (const ToolWord& word : key.words) expected.push_back(word.from);
    fail(written,
         fmt::format("is '{}', but Snug takes {} only{}{}", text, fmt::join(expected, " or "),
                     key.reason.empty() ? "" : ": ", key.reason));
  }

  void set(const ToolKey& key, const Written& written, std::vector<std::string> items,
           bool is_list) {
    config_.settings.push_back({std::string(key.key), std::move(items), is_list, written.where,
                                false, false, is_of_recipe(written) ? written.name : ""});
  }

  void pass_over(const Written& written, std::string_view reason) {
    std::string name = written.name;
    if (is_of_recipe(written))
      name = written.where.line > 0 ? fmt::format("'{}' (line {})", name, written.where.line)
                                    : fmt::format("'{}'", name);
    passed_over_[reason].push_back(std::move(name));
  }

  void fail(const Written& written, const std::string& problem) {
    config_.mistakes.add(
        is_of_recipe(written) ? fmt::format("'{}' {}", written.name, problem) : problem,
        written.where);
  }

  // Of a list, whose values stand for themselves.
  static bool are_all_known(const ToolKey& key, const std::vector<std::string>& items) {
    return std::ranges::all_of(items, [&](const std::string& item) {
      return std::ranges::any_of(key.words,
                                 [&](const ToolWord& word) { return is_same(item, word.from); });
    });
  }

  const std::vector<ToolKey>& keys_;
  const std::string& file_;
  ToolConfig config_;
  std::map<std::string_view, std::vector<std::string>> passed_over_;  // by reason
  std::set<std::string> refused_;                                     // groups that were reported
};

Value parsed(const Written& written) {
  return parse_value(*find_recipe_key(written.name), written);
}

}  // namespace

void fail_at(const std::vector<Written>& settings, std::string_view path,
             const std::string& problem) {
  throw base::UserError(problem, std::ranges::find(settings, path, &Written::name)->where);
}

base::Location place_in(const std::string& file, std::string_view path) {
  return {fmt::format("{}: {}", file, path), 0, 0};
}

const ToolKey* find_tool_key(const std::vector<ToolKey>& keys, std::string_view path) {
  const auto found =
      std::ranges::find_if(keys, [&](const ToolKey& key) { return fits(key.path, path); });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<Written> settings_in(const json& document, std::string_view text,
                                 const std::string& file) {
  Flattening flattening(text, file);
  flattening.add(document, "", 0);
  return std::move(flattening.all);
}

const std::string* find_setting(const std::vector<Written>& settings, std::string_view path) {
  for (const Written& setting : settings)
    if (setting.name == path && setting.items.front() != "auto") return &setting.items.front();
  return nullptr;
}

int64_t count_in(const std::vector<Written>& settings, std::string_view path) {
  const std::string& text = *find_setting(settings, path);
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < 1)
    fail_at(settings, path, fmt::format("is '{}'; expected a whole number of 1 or more", text));
  return value;
}

ToolConfig translate(const std::vector<Written>& all, const std::vector<ToolKey>& keys,
                     const std::string& file) {
  Translating translating(keys, file);
  for (const Written& written : all) translating.take(written);
  return translating.finish();
}

ToolConfig translate_file(const std::vector<Written>& all, const std::vector<ToolKey>& keys,
                          const std::string& file) {
  ToolConfig config = translate(all, keys, file);
  const std::vector<Written> settings = std::exchange(config.settings, {});
  for (const Written& written : settings) add_setting(config, written);
  return config;
}

void add_setting(ToolConfig& config, const Written& written) {
  const RecipeKey* key = find_recipe_key(written.name);
  SNUG_CHECK(key != nullptr, "no key {}", written.name);
  config.mistakes.gather([&] {
    const Value value = parsed(written);
    for (const Written& earlier : config.settings) {
      if (find_recipe_key(earlier.name) != key) continue;
      if (!is_same_value(parsed(earlier), value))
        throw base::UserError(
            fmt::format("says {}={}, and {} says {}", key->name, written.items.front(),
                        earlier.where.file, earlier.items.front()),
            written.where);
      return;
    }
    config.settings.push_back(written);
  });
}

}  // namespace snug::formats
