// How many characters of an answer have to be put in, taken out or changed to get its reference
// (Levenshtein 1966). Pure functions; they require valid UTF-8.
#pragma once

#include <cstdint>
#include <string_view>

namespace snug::scores {

// Takes time by the product of both lengths, and memory by the reference's.
int64_t edit_distance(std::string_view answer, std::string_view reference);

// 1 less the distance's share of the longer text's characters: 1 for equal texts, 0 for texts that
// have nothing in common.
double edit_similarity(std::string_view answer, std::string_view reference);

}  // namespace snug::scores
