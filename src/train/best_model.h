// Which evaluation of a run is the best, which checkpoint, and when a run that gets no better ends.
// The rules are those of transformers' Trainer and of its EarlyStoppingCallback, except that the
// best checkpoint is the best of those that were written. Pure functions on the history that
// checkpoints keep.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/recipe/recipe.h"
#include "runtime/saving/trainer_state.h"

namespace snug::train {

struct BestRule {
  std::string metric;  // its key in metrics.jsonl; empty: evaluations are not ranked
  bool is_greatest = false;
  int64_t patience = 0;  // evaluations; 0: the run is not ended early
  double threshold = 0;

  bool ranks() const { return !metric.empty(); }
  // As a checkpoint's history says it; empty where evaluations are not ranked.
  std::string name() const;
};

// What a recipe asks for, of evaluations that have these keys. Throws UserError, with the keys, for
// a metric that none of them is.
BestRule best_rule_of(const formats::Recipe& recipe, std::span<const std::string> keys);

// The history of a run that goes on under this rule: what was ranked otherwise is forgotten. Says
// whether there was such.
bool take_rule(const BestRule& rule, runtime::RunHistory& history);

// Counts an evaluation; returns whether it is better than all before. NaN is no better.
bool count_evaluation(const BestRule& rule, double metric, runtime::RunHistory& history);
// Whether the run ends: as many evaluations in a row as its patience were not better, by more than
// the threshold, than the best before each of them.
bool is_out_of_patience(const BestRule& rule, const runtime::RunHistory& history);
// Counts a checkpoint that is about to be written, of a step whose evaluation gave this.
void count_checkpoint(const BestRule& rule, double metric, int64_t step,
                      runtime::RunHistory& history);

}  // namespace snug::train
