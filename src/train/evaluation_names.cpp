#include "train/evaluation_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "plan/spec/rollout_spec.h"
#include "text/unicode/utf8.h"

namespace snug::train {
namespace {

bool is_safe(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '-' ||
         static_cast<unsigned char>(byte) >= 0x80;  // a part of a letter of another script
}

std::string safe_name(const std::string& wanted) {
  std::string name = text::repair_utf8(wanted);
  std::ranges::replace_if(
      name, [](char byte) { return !is_safe(byte); }, '_');
  return name.empty() ? "data" : name;
}

}  // namespace

std::string evaluation_key(std::string_view set, std::string_view measure) {
  return set.empty() ? fmt::format("eval_{}", measure) : fmt::format("eval_{}_{}", set, measure);
}

std::span<const std::string_view> measures_of_all(const methods::Objective& objective) {
  static constexpr std::string_view kOfLosses[]{kLossMeasure, kPerplexityMeasure};
  static constexpr std::string_view kOfRewards[]{plan::kRewardMetric};
  if (objective.makes_answers) return kOfRewards;
  return std::span(kOfLosses).first(objective.is_token_mean ? 2 : 1);
}

std::vector<std::string> evaluation_keys(std::span<const std::string> sets,
                                         std::span<const std::string_view> of_all,
                                         std::span<const std::string_view> measures) {
  std::vector<std::string> keys;
  const auto add = [&](std::string_view set, std::span<const std::string_view> added) {
    for (const std::string_view measure : added) {
      std::string key = evaluation_key(set, measure);
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    }
  };
  add("", of_all);
  for (const std::string& set : sets) {
    const std::string_view name = sets.size() > 1 ? std::string_view(set) : "";
    add(name, of_all);
    add(name, measures);
  }
  return keys;
}

std::vector<std::string> evaluation_names(std::span<const std::string> wanted,
                                          std::span<const std::string_view> measures) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  const auto keys_of = [&](const std::string& name) {
    std::vector<std::string> keys{evaluation_key(name, kLossMeasure),
                                  evaluation_key(name, kPerplexityMeasure)};
    for (const std::string_view measure : measures) keys.push_back(evaluation_key(name, measure));
    return keys;
  };
  const auto is_free = [&](const std::string& name) {
    return std::ranges::none_of(keys_of(name),
                                [&](const auto& key) { return taken.contains(key); });
  };
  for (const std::string& each : wanted) {
    const std::string safe = safe_name(each);
    std::string name = safe;
    for (int number = 2; !is_free(name); ++number) name = fmt::format("{}_{}", safe, number);
    for (std::string& key : keys_of(name)) taken.insert(std::move(key));
    names.push_back(name);
  }
  return names;
}

}  // namespace snug::train
