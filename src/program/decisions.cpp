#include "program/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/words.h"
#include "program/dispatch.h"
#include "program/kind.h"
#include "program/kinds/functions.h"

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

template <typename Struct>
void clear_decisions(Struct& attributes) {
  if constexpr (requires { Struct::kTraits; }) {
    const auto clear = [&](const auto& field) {
      if (std::ranges::count(Struct::kTraits.decisions, field.name) > 0)
        attributes.*field.member = Struct{}.*field.member;
    };
    std::apply([&](const auto&... fields) { (clear(fields), ...); }, Struct::kFields);
  }
}

bool is_way_of_timed(int64_t way) {
  return way == static_cast<int64_t>(ProductAlgorithm::library) ||
         way == static_cast<int64_t>(ProductAlgorithm::thin);
}

template <typename Struct>
bool is_product_algorithm(std::string_view name) {
  bool found = false;
  const auto look = [&](const auto& field) {
    using Value = std::decay_t<decltype(std::declval<Struct>().*field.member)>;
    found = found || (std::is_same_v<Value, ProductAlgorithm> && field.name == name);
  };
  std::apply([&](const auto&... fields) { (look(fields), ...); }, Struct::kFields);
  return found;
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

Attributes undecided(const Attributes& attributes) {
  Attributes cleared = attributes;
  std::visit([](auto& concrete) { clear_decisions(concrete); }, cleared);
  return cleared;
}

std::string decision_text(Kind kind, std::string_view name, int64_t value) {
  return std::visit(
      [&](const auto& attributes) {
        return text_of<std::decay_t<decltype(attributes)>>(name, value);
      },
      default_attributes(kind));
}

int64_t undecided_value(Kind kind, std::string_view name) {
  const std::optional<int64_t> value = dispatch<std::optional<int64_t>>(
      default_attributes(kind), [&](const auto& attributes) { return value_of(attributes, name); });
  SNUG_CHECK(value.has_value(), "{} has no attribute {}", name_of(kind), name);
  return *value;
}

bool may_have_no_work(Kind kind, std::string_view name) {
  return dispatch<bool>(default_attributes(kind), [&]<typename Struct>(const Struct&) {
    return std::ranges::count(FunctionsOf<Struct>::kDefined.by_values, name) > 0;
  });
}

std::optional<ProductAlgorithm> product_algorithm(Kind kind, std::string_view name, int64_t value) {
  const bool is_one = std::visit(
      [&](const auto& attributes) {
        return is_product_algorithm<std::decay_t<decltype(attributes)>>(name);
      },
      default_attributes(kind));
  return is_one ? std::optional(static_cast<ProductAlgorithm>(value)) : std::nullopt;
}

bool is_class(Kind kind, std::string_view name, int64_t value) {
  return product_algorithm(kind, name, value) == ProductAlgorithm::timed;
}

bool is_of_class(Kind kind, std::string_view name, int64_t value, int64_t way) {
  return is_class(kind, name, value) && is_way_of_timed(way);
}

}  // namespace snug::program
