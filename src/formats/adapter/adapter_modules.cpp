#include "formats/adapter/adapter_modules.h"

#include "base/error.h"
#include "base/lower_case.h"
#include "formats/adapter/adapter_folder.h"
#include "formats/adapter/adapter_names.h"
#include "formats/adapter/module_pattern.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/adapter/renamed_modules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

namespace snug::formats {
namespace {

using nlohmann::json;

bool is_given(const base::JsonObject& config, const char* key) {
  if (!config.has(key)) return false;
  const json& value = config.value()[key];
  return !(value.is_array() && value.empty());
}

std::vector<std::string_view> parts_of(std::string_view module) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    parts.push_back(module.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The module's layer by PEFT's rule: the first number between two parts of the name, where the part
// before it must be one of "layers_pattern" if that is given.
std::optional<int64_t> layer_of(std::string_view module, const std::vector<std::string>& patterns) {
  const auto parts = parts_of(module);
  const auto first_after = [&](const std::string* name) -> std::optional<int64_t> {
    for (size_t i = name == nullptr ? 2 : 1; i + 1 < parts.size(); ++i) {
      int64_t number = 0;
      const char* end = parts[i].data() + parts[i].size();
      const auto parsed = std::from_chars(parts[i].data(), end, number);
      if (parsed.ec != std::errc{} || parsed.ptr != end) continue;
      if (name == nullptr || *name == parts[i - 1]) return number;
    }
    return std::nullopt;
  };
  if (patterns.empty()) return first_after(nullptr);
  for (const std::string& pattern : patterns)
    if (const auto layer = first_after(&pattern)) return layer;
  return std::nullopt;
}

// PEFT knows an embedding and the head that it may be by these names alone.
constexpr std::array<const char*, 2> kTables{"embed_tokens", "lm_head"};

bool is_table(std::string_view module) {
  return std::ranges::count(kTables, parts_of(module).back()) > 0;
}

std::vector<std::string> texts_of(const base::JsonObject& config, const char* key) {
  if (!is_given(config, key)) return {};
  if (config.value()[key].is_string()) return {config.text(key)};
  return config.texts(key);
}

std::vector<int64_t> layers_of(const base::JsonObject& config) {
  const json& value = config.value()["layers_to_transform"];
  if (value.is_number_integer()) return {value.get<int64_t>()};
  std::vector<int64_t> layers;
  for (const json& layer : value.is_array() ? value : json::array({nullptr})) {
    if (!layer.is_number_integer())
      config.fail("layers_to_transform",
                  fmt::format("is {}; expected a layer or a list of them", value.dump()));
    layers.push_back(layer.get<int64_t>());
  }
  return layers;
}

std::vector<std::string> layer_patterns_of(const base::JsonObject& config) {
  std::vector<std::string> patterns = texts_of(config, "layers_pattern");
  for (const std::string& pattern : patterns)
    if (is_module_pattern(pattern))
      config.fail(
          "layers_pattern",
          fmt::format("is the regular expression '{}', but Snug reads names there", pattern));
  return patterns;
}

// How a key selects a module: by its full name, by its last parts, by a pattern, or not at all.
enum class Named : uint8_t { no, whole, by_end, by_pattern };

// The modules that a key selects: by a list of names, each a full name or the last parts of one, or
// by a single pattern if the key holds a text.
class Selection {
 public:
  Selection(const base::JsonObject& config, const char* key) : config_(config), key_(key) {
    if (!is_given(config, key)) return;
    if (!config.value()[key].is_string()) {
      names_ = config.texts(key);
      return;
    }
    checked([&] { pattern_.emplace(config.text(key)); });
  }

  Named names(const std::string& module) const {
    if (pattern_) {
      bool is_match = false;
      checked([&] { is_match = pattern_->matches(module); });
      return is_match ? Named::by_pattern : Named::no;
    }
    const auto is_end = [&](const std::string& name) { return module.ends_with("." + name); };
    if (std::find(names_.begin(), names_.end(), module) != names_.end()) return Named::whole;
    return std::any_of(names_.begin(), names_.end(), is_end) ? Named::by_end : Named::no;
  }

 private:
  template <typename Call>
  void checked(const Call& call) const {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      config_.fail(key_, fmt::format("cannot be used: {}", error.what()));
    }
  }

  const base::JsonObject& config_;
  const char* key_;
  std::vector<std::string> names_;
  std::optional<ModulePattern> pattern_;
};

// Which modules a config selects, by PEFT's rules.
class Rules {
 public:
  explicit Rules(const base::JsonObject& config)
      : has_layers_(is_given(config, "layers_to_transform")),
        layers_(has_layers_ ? layers_of(config) : std::vector<int64_t>{}),
        patterns_(layer_patterns_of(config)),
        ties_(ties_adapters(config)),
        excluded_(config, "exclude_modules") {
    if (!targets_all_linear(config)) targets_.emplace(config, "target_modules");
  }

  // The key that excludes a module; nullptr if the module is selected.
  const char* left_out_by(const std::string& module) const {
    if (ties_ && is_table(module)) return nullptr;
    if (excluded_.names(module) != Named::no) return "exclude_modules";
    const Named named = targets_ ? targets_->names(module) : Named::by_end;
    if (named == Named::no) return "target_modules";
    // A full name selects the module in any layer.
    if (!has_layers_ || named == Named::whole) return nullptr;
    const auto layer = layer_of(module, patterns_);
    const bool is_meant = layer && std::ranges::count(layers_, *layer) > 0;
    return is_meant ? nullptr : "layers_to_transform";
  }

 private:
  bool has_layers_;
  std::vector<int64_t> layers_;
  std::vector<std::string> patterns_;
  bool ties_;
  Selection excluded_;
  std::optional<Selection> targets_;  // nothing: all linears
};

// Translates between the file's names of modules and their names without wrappers, which differ in
// the part before their common end.
class StoredNames {
 public:
  explicit StoredNames(const std::string& stored) {
    const std::string plain = plain_module(stored);
    size_t shared = 0;
    while (shared < std::min(stored.size(), plain.size()) &&
           stored[stored.size() - shared - 1] == plain[plain.size() - shared - 1])
      ++shared;
    stored_ = stored.substr(0, stored.size() - shared);
    plain_ = plain.substr(0, plain.size() - shared);
  }

  std::string of(const std::string& plain) const {
    return plain.starts_with(plain_) ? stored_ + plain.substr(plain_.size()) : plain;
  }

 private:
  std::string stored_;
  std::string plain_;
};

}  // namespace

bool targets_all_linear(const base::JsonObject& config) {
  constexpr const char* kKey = "target_modules";
  return config.has(kKey) && config.value()[kKey].is_string() &&
         base::lower_case(config.text(kKey)) == kAllLinear;
}

bool narrows_targets(const base::JsonObject& config) {
  if (is_given(config, "layers_to_transform") || is_given(config, "exclude_modules")) return true;
  const bool is_text = config.has("target_modules") && config.value()["target_modules"].is_string();
  return is_text && !targets_all_linear(config);
}

bool ties_adapters(const base::JsonObject& config) {
  if (!config.boolean_or("ensure_weight_tying", false)) return false;
  if (std::ranges::any_of(texts_of(config, "modules_to_save"), is_table)) return false;
  if (targets_all_linear(config)) return false;
  const bool is_text = config.has("target_modules") && config.value()["target_modules"].is_string();
  if (!is_text) return std::ranges::any_of(texts_of(config, "target_modules"), is_table);
  const Selection targets(config, "target_modules");
  return std::ranges::any_of(kTables,
                             [&](const char* table) { return targets.names(table) != Named::no; });
}

std::vector<std::string> adapter_modules(const std::filesystem::path& folder,
                                         const base::JsonObject& config) {
  const Rules rules(config);
  const std::vector<std::string> parameters = texts_of(config, "target_parameters");
  std::vector<std::string> modules = stored_modules(folder);
  std::erase_if(modules, [&](const std::string& module) {
    return wrapped_parameter(module, parameters) != module;
  });
  for (const std::string& module : modules) {
    const char* key = rules.left_out_by(module);
    if (key == nullptr) continue;
    const bool is_text = config.has(key) && config.value()[key].is_string();
    config.fail(
        key,
        fmt::format("leaves out '{}', which {} holds{}", module,
                    (folder / kAdapterWeightsName).string(),
                    is_text ? "; a text is a regular expression that matches whole names" : ""));
  }
  return modules;
}

std::vector<std::string> missing_modules(const std::filesystem::path& folder,
                                         const std::vector<std::string>& linears) {
  const std::string path = (folder / kAdapterConfigName).string();
  const json document = base::read_json_file(path);
  const base::JsonObject config(document, path);
  if (!narrows_targets(config)) return {};
  const Rules rules(config);
  const std::vector<std::string> stored = stored_modules(folder);
  const StoredNames names(stored.front());
  std::set<std::string> held;
  for (const std::string& module : stored) held.insert(plain_module(module));
  std::vector<std::string> missing;
  for (const std::string& linear : linears)
    if (!held.contains(linear) && rules.left_out_by(names.of(linear)) == nullptr)
      missing.push_back(linear);
  return missing;
}

}  // namespace snug::formats
