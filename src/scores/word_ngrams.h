// Runs of words, counted: what BLEU and ROUGE compare. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace snug::scores {

using NgramCounts = std::unordered_map<std::string, int64_t>;

// The words between white space, as Python's str.split() finds them. Requires valid UTF-8.
std::vector<std::string> words_between_space(std::string_view text);

// How often each run of `size` words occurs. Requires words without spaces, and size >= 1.
NgramCounts ngram_counts(std::span<const std::string> words, size_t size);

// How many runs of `size` words there are.
int64_t ngram_total(std::span<const std::string> words, size_t size);

// How many runs both have: each as often as the one that has it less often.
int64_t common_ngrams(const NgramCounts& one, const NgramCounts& other);

}  // namespace snug::scores
