// How long a run takes for what is no step, by the clock: the pass over the data that keeps
// log-probabilities of the model as training begins, an evaluation, a checkpoint. Loading is
// load_seconds (clock.h).
//
// What it leaves out: that documents of the evaluation data may be of other lengths than those of
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

// What passes are priced by. `rows`: nothing where the data were not read, so that nobody knows how
// often a program runs.
struct PassInputs {
  const Job& job;
  const TrainingSpec& spec;
  const Rates& rates;
  const program::ExpectedBounds& expected;
  std::optional<EpochRows> rows;
};

// `prepare`, then `reference` over all data, of which each rank makes every number; nothing where a
// job keeps none.
std::optional<PassFigures> reference_pass(const PassInputs& inputs);
// `evaluate` over each evaluation set, which ranks divide; nothing where there are none.
std::optional<PassFigures> evaluation_pass(const PassInputs& inputs);
// Of the programs that write a checkpoint, with the optimizer's state or of the model alone.
double save_seconds(const Job& job, const Rates& rates, bool only_model);

}  // namespace snug::plan
