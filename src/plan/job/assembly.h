// A job with all that is said of it before it runs. It is put together here alone, once for
// training and once for inference: every verb takes its plan, its fit and its advice from what
// these functions give.
//
//   recipe -> spec -> job -> memory, clock -> what lies outside the arenas -> fit -> advice
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "plan/choice/chosen.h"
#include "plan/choice/fit.h"
#include "plan/document/document.h"
#include "plan/job/job.h"
#include "plan/spec/spec.h"
#include "plan/time/rates.h"
#include "plan/time/run_times.h"
#include "plan/time/step_times.h"
#include "program/ir/program.h"

namespace snug::formats {
struct Recipe;
}

namespace snug::plan {

// What only the process itself can measure.
struct ProcessBytes {
  int64_t outside_bytes = 0;        // what it will hold next to the job's arenas
  int64_t resident_peak_bytes = 0;  // what it held at most until now
};
// Measures a job that is planned and not yet allocated (runtime/execution/rehearsal.h). Empty: what
// lies outside the arenas stays unknown.
using MeasureProcess = std::function<ProcessBytes(const Job&)>;

struct PlannedJob {
  Job job;
  PlanDocument document;
  ProcessBytes process;
};

// What is known of the data of a training job. A plan without data takes rows to be full.
struct DataFacts {
  JobDocuments documents;
  program::ExpectedBounds expected;  // of their batches
  int64_t reading_bytes = 0;         // what the process may hold while they are read
  EpochRows rows{};
};

// What is referred to must outlive what is made of it.
struct TrainingInputs {
  const formats::Recipe& recipe;  // resolved for the model
  const models::ModelSource& model;
  const program::Target& target;
  std::optional<DataFacts> data{};
  bool verify = false;  // check every pass and the layout
  // The least that the device of any rank can hold, for several ranks, so that all choose alike.
  std::optional<int64_t> least_capacity_bytes{};
  // What is taken of what the recipe leaves open. Nothing: it is chosen.
  std::optional<Chosen> chosen{};

  // Of the data; none without.
  const JobDocuments& documents() const;
};

struct PlannedTraining : PlannedJob {
  TrainingInputs inputs;
  TrainingSpec spec;
  Rates rates;
  program::ExpectedBounds expected;  // of batches, by the clock

  // What the user should know of the plan: keys that have no effect in this job,
  // and dropout of the model's own, which is not done.
  std::vector<std::string> notices() const;
  // Where the time of a step goes, slowest first.
  std::vector<TimedOperations> times() const;
  // What another of several ranks is given, so that it plans the same job.
  Chosen chosen() const;
  // Searches for the cheapest change only where the job does not fit.
  Verdict verdict() const;
};

// Throws UserError as training_spec does.
PlannedTraining assemble_training(const TrainingInputs& inputs, const MeasureProcess& measure = {});

// Tokens that a prefill takes at once, if there are that many, and the least.
inline constexpr int64_t kPrefillTokens = 512;
inline constexpr int64_t kMinPrefillTokens = 16;

struct InferenceInputs {
  const formats::Recipe& recipe;
  const models::ModelConfig& model;
  const program::Target& target;
  InferenceShape shape;  // its prefill_tokens are the most: they get fewer where memory is short
};

struct PlannedInference : PlannedJob {
  InferenceSpec spec;
};

// Plans with the largest chunk that fits: halved, down to kMinPrefillTokens. The process is
// measured once, and where host_memory is limited alone. Throws UserError with exit code 3 and the
// cheapest change when none fits; other UserErrors for an adapter that is not of this model.
PlannedInference assemble_inference(const InferenceInputs& inputs, const MeasureProcess& measure);

}  // namespace snug::plan
