#include "program/decisions.h"

#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/words.h"
#include "program/kind.h"

namespace snug::program {
namespace {

template <typename Struct>
std::optional<int64_t> value_of(const Struct& attributes, std::string_view name) {
  std::optional<int64_t> value;
  const auto look = [&](const auto& field) {
    using Value = std::decay_t<decltype(attributes.*field.member)>;
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>)
      if (field.name == name) value = static_cast<int64_t>(attributes.*field.member);
  };
  std::apply([&](const auto&... fields) { (look(fields), ...); }, Struct::kFields);
  return value;
}

template <typename Struct>
std::string text_of(std::string_view name, int64_t value) {
  std::string text = fmt::format("{}", value);
  const auto look = [&](const auto& field) {
    using Value = std::decay_t<decltype(std::declval<Struct>().*field.member)>;
    if constexpr (std::is_enum_v<Value>)
      if (field.name == name) text = base::word_of(static_cast<Value>(value));
  };
  std::apply([&](const auto&... fields) { (look(fields), ...); }, Struct::kFields);
  return text;
}

}  // namespace

std::vector<std::pair<std::string_view, int64_t>> decisions_of(const Operation& operation) {
  std::vector<std::pair<std::string_view, int64_t>> decisions;
  for (const std::string_view name : traits_of(operation).decisions) {
    if (name.empty()) continue;
    const std::optional<int64_t> value = std::visit(
        [&](const auto& attributes) { return value_of(attributes, name); }, operation.attributes);
    SNUG_CHECK(value.has_value(), "{} has no attribute {}", name_of(operation.kind()), name);
    decisions.emplace_back(name, *value);
  }
  return decisions;
}

std::string decision_text(Kind kind, std::string_view name, int64_t value) {
  return std::visit(
      [&](const auto& attributes) {
        return text_of<std::decay_t<decltype(attributes)>>(name, value);
      },
      default_attributes(kind));
}

}  // namespace snug::program
