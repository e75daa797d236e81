#include "models/families.h"

#include <fmt/format.h>

#include <array>

namespace snug::models {
namespace {

constexpr std::array kFamilies{Family{"llama", parse_llama}};

}  // namespace

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (const Family& family : kFamilies)
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", family.model_type);
  return names;
}

int64_t positive(const base::JsonObject& json, std::string_view key) {
  const int64_t value = json.integer(key);
  if (value <= 0) json.fail(key, fmt::format("is {}; expected a positive integer", value));
  return value;
}

int64_t positive_or(const base::JsonObject& json, std::string_view key, int64_t fallback) {
  return json.has(key) ? positive(json, key) : fallback;
}

}  // namespace snug::models
