// How long an answer is, and how much of it repeats. Pure functions; they require valid UTF-8.
#pragma once

#include <cstdint>
#include <string_view>

namespace snug::scores {

int64_t answer_length(std::string_view answer);  // in characters

// The share of the answer's runs of `size` words that are equal to another run before them: 0
// where all differ or there are none, near 1 for an answer that goes round in circles ("seq-rep" of
// Welleck et al. 2019). Words stand between white space.
double answer_repetition(std::string_view answer, int64_t size);

}  // namespace snug::scores
