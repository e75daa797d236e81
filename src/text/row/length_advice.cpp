#include "text/row/length_advice.h"

#include <fmt/format.h>

#include <algorithm>

namespace snug::text {

void NeededLength::add(const NeededLength& other) {
  whole = std::max(whole, other.whole);
  first_target = std::max(first_target, other.first_target);
}

std::string length_advice(const NeededLength& needed, int64_t records) {
  const auto& [whole, first_target, positions, key] = needed;
  const bool are_several = records > 1;
  if (whole <= positions)
    return fmt::format("set {}={}, which holds all of {}", key, whole, are_several ? "them" : "it");
  if (needed.is_reachable())
    return fmt::format(
        "{} {} tokens, and the model has {} positions: set {}={}, which holds a part of {}, or "
        "shorten the prompt{}",
        are_several ? "the longest takes" : "all of it takes", whole, positions, key, positions,
        are_several ? "each answer at least" : "the answer", are_several ? "s" : "");
  return fmt::format(
      "the model has {} positions, so that no {} keeps any of {}: shorten the prompt{}", positions,
      key, are_several ? "them" : "it", are_several ? "s" : "");
}

}  // namespace snug::text
