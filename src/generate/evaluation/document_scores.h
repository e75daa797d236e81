// What a task's metrics make of one document's log-probabilities or answer. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generate/evaluation/figures.h"
#include "generate/evaluation/task_question.h"

namespace snug::generate {

// A document's continuations, scored: one for each choice, or a single one.
struct ScoredPair {
  double log_probability = 0;
  bool is_greedy = false;
};

// 1 or 0 for the metrics of multiple choice; of loglikelihood 1 or 0 for acc, the log-probability
// for perplexity.
double pair_score(Metric metric, const TaskQuestion& question, std::span<const ScoredPair> pairs);

// The log-probability of a whole text with its number of words, or of bytes.
Weighed text_score(Metric metric, const TaskQuestion& question, double log_probability);

// 1 where the answer, once filtered, is one of the expected texts.
double answer_score(const MatchRules& rules, const TaskQuestion& question,
                    const std::string& answer);

}  // namespace snug::generate
