// How long a run takes for what is no step, by the clock: the pass over the data that keeps
// log-probabilities of the model as training begins, an evaluation, a checkpoint. Loading is
// load_seconds (clock.h).
//
// What it leaves out: that answers end early, and that fewer and fewer are then generated side by
// side; that documents of the evaluation data may be of other lengths than those of
// the training data; syncing and checksums of files.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/document/document.h"
#include "plan/job/job.h"
#include "plan/time/rates.h"

namespace snug::plan {

// Rows that hold every document of a job's data once.
struct EpochRows {
  int64_t training = 0;
  std::vector<int64_t> evaluation{};  // of each set
};

// The answers that an evaluation generates (generation_spec.h).
struct AskedAnswers {
  int64_t count = 0;        // of all sets
  int64_t new_tokens = 0;   // at most, of each
  int64_t of_a_prompt = 1;  // which is read once for all of them
};

// What passes are priced by. `rows`: nothing where the data were not read, so that nobody knows how
// often a program runs.
struct PassInputs {
  const Job& job;
  const TrainingSpec& spec;
  const Rates& rates;
  const program::ExpectedBounds& expected;
  std::optional<EpochRows> rows;
  AskedAnswers answers{};
};

// `prepare`, then `reference` over all data, of which each rank makes every number; nothing where a
// job keeps none.
std::optional<PassFigures> reference_pass(const PassInputs& inputs);
// Of a job that evaluates: `evaluate` over each evaluation set, which ranks divide, and the answers
// that are generated, each as long as it may be; or, of an objective that makes answers, those to
// all prompts, without their rewards. Nothing where no program evaluates.
std::optional<PassFigures> evaluation_pass(const PassInputs& inputs);
// The answers that a job learns from, without their rewards; nothing where it makes none.
std::optional<RolloutFigures> rollout_figures(const PassInputs& inputs);
// Of the programs that write a checkpoint, with the optimizer's state or of the model alone.
double save_seconds(const Job& job, const Rates& rates, bool only_model);

}  // namespace snug::plan
