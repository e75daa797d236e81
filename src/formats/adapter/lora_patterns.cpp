#include "formats/adapter/lora_patterns.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/json_parser.h"

namespace snug::formats {
namespace {

// The keys of the object under `key` in the order of the text, which a parsed document does not
// preserve.
std::vector<std::string> keys_in_order(const std::string& text, const std::string& key) {
  std::vector<std::string> keys;
  bool is_inside = false;
  const auto note = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event != nlohmann::json::parse_event_t::key) return true;
    if (depth == 1) is_inside = parsed == key;
    if (depth == 2 && is_inside) keys.push_back(parsed.get<std::string>());
    return true;
  };
  const auto complain = [](const std::string& problem, size_t /*offset*/) {
    SNUG_CHECK(false, "what was parsed before is not taken: {}", problem);
  };
  base::parse_json_value(text, complain, note);
  return keys;
}

}  // namespace

template <typename Call>
void LoraPatterns::checked(const Call& call) const {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    config_.fail(key_, fmt::format("cannot be used: {}", error.what()));
  }
}

LoraPatterns::LoraPatterns(const base::JsonObject& config, std::string key, const std::string& text)
    : config_(config), key_(std::move(key)) {
  if (!config.has(key_)) return;
  const base::JsonObject values = config.object(key_);
  for (const std::string& pattern : keys_in_order(text, key_)) {
    const double value = values.number(pattern);
    if (!(value > 0)) values.fail(pattern, fmt::format("is {}; expected more than 0", value));
    checked([&] { patterns_.emplace_back(last_parts_pattern(pattern), value); });
  }
}

std::optional<double> LoraPatterns::of(const std::string& module) const {
  for (const auto& pattern : patterns_) {
    bool is_match = false;
    checked([&] { is_match = pattern.first.matches(module); });
    if (is_match) return pattern.second;
  }
  return std::nullopt;
}

}  // namespace snug::formats
