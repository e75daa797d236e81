#include "program/work/decisions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/words.h"
#include "program/kinds/dispatch.h"
#include "program/kinds/kind.h"

namespace snug::program {
namespace {

template <typename Struct>
std::vector<std::pair<std::string_view, int64_t>> decisions_among(const Struct& attributes) {
  std::vector<std::pair<std::string_view, int64_t>> decisions;
  for_each_part<Struct>([&](const auto& part) {
    decisions.emplace_back(part.name, static_cast<int64_t>(part.of(attributes)));
  });
  return decisions;
}

template <typename Struct>
std::string text_of(std::string_view name, int64_t value) {
  std::string text = fmt::format("{}", value);
  for_each_part<Struct>([&](const auto& part) {
    using Value = std::decay_t<decltype(part.of(std::declval<Struct&>()))>;
    if constexpr (std::is_enum_v<Value>)
      if (part.name == name) text = base::word_of(static_cast<Value>(value));
  });
  return text;
}

template <typename Struct>
void clear_decisions(Struct& attributes) {
  const Struct defaults;
  for_each_part<Struct>([&](const auto& part) { part.of(attributes) = part.of(defaults); });
}

bool is_way_of_timed(int64_t way) {
  return way == static_cast<int64_t>(ProductAlgorithm::library) ||
         way == static_cast<int64_t>(ProductAlgorithm::thin);
}

template <typename Struct>
bool is_product_algorithm(std::string_view name) {
  bool found = false;
  for_each_part<Struct>([&](const auto& part) {
    using Value = std::decay_t<decltype(part.of(std::declval<Struct&>()))>;
    found = found || (std::is_same_v<Value, ProductAlgorithm> && part.name == name);
  });
  return found;
}

}  // namespace

std::vector<std::pair<std::string_view, int64_t>> decisions_of(const Operation& operation) {
  return dispatch<std::vector<std::pair<std::string_view, int64_t>>>(
      operation.attributes, [](const auto& attributes) { return decisions_among(attributes); });
}

Attributes undecided(const Attributes& attributes) {
  Attributes cleared = attributes;
  dispatch<void>(cleared, [](auto& concrete) { clear_decisions(concrete); });
  return cleared;
}

std::string decision_text(Kind kind, std::string_view name, int64_t value) {
  return dispatch<std::string>(default_attributes(kind), [&]<typename Struct>(const Struct&) {
    return text_of<Struct>(name, value);
  });
}

int64_t undecided_value(Kind kind, std::string_view name) {
  const auto decisions = dispatch<std::vector<std::pair<std::string_view, int64_t>>>(
      default_attributes(kind), [](const auto& attributes) { return decisions_among(attributes); });
  const auto found =
      std::ranges::find(decisions, name, &std::pair<std::string_view, int64_t>::first);
  SNUG_CHECK(found != decisions.end(), "{} has no decision {}", name_of(kind), name);
  return found->second;
}

std::string pieces_error(const WorkList& planned, std::span<const int64_t> pieces) {
  if (const auto& routed = planned.routed) {
    const int64_t done = std::accumulate(pieces.begin(), pieces.end(), int64_t{0});
    if (pieces.size() == 2 && done == routed->rows) return {};
    return fmt::format("multiplied {} rows ({}), planned were {}", done, fmt::join(pieces, ", "),
                       routed->rows);
  }
  if (std::ranges::equal(pieces, planned.pieces)) return {};
  return fmt::format("was done in pieces of {}, planned were {}", fmt::join(pieces, ", "),
                     fmt::join(planned.pieces, ", "));
}

bool is_in_pieces(const Operation& operation, const WorkList& planned, std::string_view name,
                  std::span<const int64_t> pieces) {
  if (planned.routed)
    for (const RoutedDecision& each : planned.routed->decisions)
      if (each.decision == name)
        return (each.of_first ? pieces[0] : 0) + (each.of_second ? pieces[1] : 0) <= each.more_than;
  return dispatch<bool>(operation.attributes, [&]<typename Struct>(const Struct& /*attributes*/) {
    bool is_in = false;
    for_each_part<Struct>([&](const auto& part) {
      is_in = is_in || (part.name == name && part.shown.noted == Noted::in_pieces);
    });
    return is_in;
  });
}

Priced priced_as(Kind kind, std::string_view name) {
  return dispatch<Priced>(default_attributes(kind), [&]<typename Struct>(const Struct&) {
    Priced priced = Priced::by_word;
    for_each_part<Struct>([&](const auto& part) {
      if (part.name == name) priced = part.shown.priced;
    });
    return priced;
  });
}

std::optional<ProductAlgorithm> product_algorithm(Kind kind, std::string_view name, int64_t value) {
  const bool is_one = dispatch<bool>(default_attributes(kind), [&]<typename Struct>(const Struct&) {
    return is_product_algorithm<Struct>(name);
  });
  return is_one ? std::optional(static_cast<ProductAlgorithm>(value)) : std::nullopt;
}

bool is_class(Kind kind, std::string_view name, int64_t value) {
  return product_algorithm(kind, name, value) == ProductAlgorithm::timed;
}

bool is_of_class(Kind kind, std::string_view name, int64_t value, int64_t way) {
  return is_class(kind, name, value) && is_way_of_timed(way);
}

}  // namespace snug::program
