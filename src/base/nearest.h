// The word a user most likely meant, for "unknown key 'lerning_rate', did you mean
// 'learning_rate'?".
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace snug::base {

// Damerau-Levenshtein distance (adjacent swaps count one), ignoring case.
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, the first one on a tie, where it is so near that a slip explains
// it: a third of the longer one's letters may differ, or one. None when all are farther.
std::optional<std::string_view> nearest_name(std::string_view word,
                                             const std::vector<std::string_view>& candidates);

// The same where a slip of the hand explains the difference, so that both mean the same: an edit or
// two, none of which makes another word of a short one or changes a digit.
std::optional<std::string_view> nearest_slip(std::string_view word,
                                             const std::vector<std::string_view>& candidates);

}  // namespace snug::base
