// ROUGE (Lin 2004), with the values of the package rouge_score without a stemmer: the F measure of
// what an answer and its reference share, from 0 to 1. Words are runs of a to z and 0 to 9 once the
// text is in lower case, so that a text in another script has none and scores 0. Pure functions;
// they require valid UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace snug::scores {

// Shared runs of `size` words: rouge1, rouge2.
double rouge_ngrams(std::string_view answer, std::string_view reference, size_t size);

// The longest sequence of words that both have in this order, other words between them or not:
// rougeL.
double rouge_sequence(std::string_view answer, std::string_view reference);

// The same by sentence, where each line is one: the words of each of the reference's sentences that
// are in such a sequence with any of the answer's: rougeLsum.
double rouge_lines(std::string_view answer, std::string_view reference);

}  // namespace snug::scores
