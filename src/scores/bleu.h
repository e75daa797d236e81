// BLEU (Papineni et al. 2002), with the values of sacrebleu and its defaults: tokenizer 13a, runs
// of one to four words, smoothing "exp", from 0 to 100. Pure functions; they require valid UTF-8.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scores/scored_answer.h"

namespace snug::scores {

// The words of a text as mteval-v13a cuts them.
std::vector<std::string> bleu_words(std::string_view text);

// sacrebleu's sentence_bleu: runs longer than the answer do not count.
double sentence_bleu(std::string_view answer, std::string_view reference);

// sacrebleu's corpus_bleu of all answers together, which is no mean of the above.
double corpus_bleu(std::span<const ScoredAnswer> answers);

}  // namespace snug::scores
