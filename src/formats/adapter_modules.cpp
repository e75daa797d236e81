#include "formats/adapter_modules.h"

#include "base/error.h"
#include "formats/peft_adapter.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
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

// As PEFT finds it: the last number between two names, or the one that follows a part of
// "layers_pattern".
std::optional<int64_t> layer_of(std::string_view module, const std::vector<std::string>& patterns) {
  std::optional<int64_t> layer;
  const auto parts = parts_of(module);
  for (size_t i = 1; i + 1 < parts.size(); ++i) {
    int64_t number = 0;
    const char* end = parts[i].data() + parts[i].size();
    const auto parsed = std::from_chars(parts[i].data(), end, number);
    if (parsed.ec != std::errc{} || parsed.ptr != end) continue;
    if (patterns.empty() ||
        std::find(patterns.begin(), patterns.end(), parts[i - 1]) != patterns.end())
      layer = number;
  }
  return layer;
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

}  // namespace

bool narrows_targets(const base::JsonObject& config) {
  if (is_given(config, "layers_to_transform") || is_given(config, "exclude_modules")) return true;
  if (!config.has("target_modules") || !config.value()["target_modules"].is_string()) return false;
  // PEFT takes a text for a regular expression over module names; one plain name is both.
  return config.text("target_modules").find_first_of(".*+?[](){}|^$\\") != std::string::npos;
}

std::vector<std::string> adapter_modules(const std::filesystem::path& folder,
                                         const base::JsonObject& config) {
  const auto check = [&](const std::string& module, const char* key, bool is_in) {
    if (!is_in)
      config.fail(key, fmt::format("leaves out '{}', which {} holds", module,
                                   (folder / kAdapterWeightsName).string()));
  };
  const bool has_layers = is_given(config, "layers_to_transform");
  const std::vector<int64_t> layers = has_layers ? layers_of(config) : std::vector<int64_t>{};
  const std::vector<std::string> patterns = texts_of(config, "layers_pattern");
  // A text is a pattern, which the trainer applied; a list has names.
  const bool excludes_names =
      is_given(config, "exclude_modules") && config.value()["exclude_modules"].is_array();
  const std::vector<std::string> excluded =
      excludes_names ? config.texts("exclude_modules") : std::vector<std::string>{};
  std::vector<std::string> modules = stored_modules(folder);
  for (const std::string& module : modules) {
    const auto layer = layer_of(module, patterns);
    check(
        module, "layers_to_transform",
        !has_layers || (layer && std::find(layers.begin(), layers.end(), *layer) != layers.end()));
    check(module, "exclude_modules",
          std::none_of(excluded.begin(), excluded.end(), [&](const std::string& name) {
            return module == name || module.ends_with("." + name);
          }));
  }
  return modules;
}

}  // namespace snug::formats
