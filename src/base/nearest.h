// The word a user most likely meant, for "unknown key 'lerning_rate', did you mean
// 'learning_rate'?".
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace snug::base {

// Damerau-Levenshtein distance (adjacent swaps count one), ignoring case.
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, the first one on a tie, if it is near enough to be explained by
// a slip: a third of the longer word's letters may differ, and one letter always may. Nothing when
// all are farther.
std::optional<std::string_view> nearest_name(std::string_view word,
                                             const std::vector<std::string_view>& candidates);

// The nearest candidate, if the difference is so small that both words must mean the same: one or
// two edits, none of which turns a short word into another or changes a digit.
std::optional<std::string_view> nearest_slip(std::string_view word,
                                             const std::vector<std::string_view>& candidates);

}  // namespace snug::base
