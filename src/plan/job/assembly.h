// A planned job with everything that is reported before it runs. Only these functions assemble it,
// one for training and one for inference; every verb takes its plan, its verdict on memory and its
// advice from them.
//
//   recipe -> spec -> job -> memory, clock -> memory outside the arenas -> fit -> advice
//
// Not thread-safe.
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

// Memory that only the process itself can measure.
struct ProcessBytes {
  int64_t outside_bytes = 0;        // the memory outside the arenas that it will have
  int64_t resident_peak_bytes = 0;  // the most that it has held so far
};
// Measures a job that has been planned but not allocated (runtime/execution/rehearsal.h). Empty:
// the memory outside the arenas stays unknown.
using MeasureProcess = std::function<ProcessBytes(const Job&)>;

struct PlannedJob {
  Job job;
  PlanDocument document;
  ProcessBytes process;
};

// What is known of a training job's data. A plan without data assumes full rows.
struct DataFacts {
  JobDocuments documents;
  program::ExpectedBounds expected;  // of their batches
  int64_t reading_bytes = 0;         // what the process may hold while they are read
  EpochRows rows{};
};

// Everything that it refers to must outlive what is made from it.
struct TrainingInputs {
  const formats::Recipe& recipe;  // resolved for the model
  const models::ModelSource& model;
  const program::Target& target;
  std::optional<DataFacts> data{};
  bool verify = false;  // verify every pass and the layout
  // The smallest capacity of any rank's device, so that all ranks make the same choices.
  std::optional<int64_t> least_capacity_bytes{};
  // The choices to use for what the recipe leaves open. Nothing: they are made here.
  std::optional<Chosen> chosen{};

  // Of the data; none without.
  const JobDocuments& documents() const;
};

struct PlannedTraining : PlannedJob {
  TrainingInputs inputs;
  TrainingSpec spec;
  Rates rates;
  program::ExpectedBounds expected;  // of batches, which the clock assumes

  // Notes about the plan for the user: keys that have no effect in this job, and dropout in the
  // model's config, which is not applied.
  std::vector<std::string> notices() const;
  // The time of each group of operations in a step, longest first.
  std::vector<TimedOperations> times() const;
  // The choices that are sent to other ranks, so that they plan the same job.
  Chosen chosen() const;
  // Searches for the cheapest change only if the job does not fit.
  Verdict verdict() const;
};

// Throws UserError as training_spec does.
PlannedTraining assemble_training(const TrainingInputs& inputs, const MeasureProcess& measure = {});

// The most tokens of one prefill, and the fewest.
inline constexpr int64_t kPrefillTokens = 512;
inline constexpr int64_t kMinPrefillTokens = 16;

struct InferenceInputs {
  const formats::Recipe& recipe;
  const models::ModelConfig& model;
  const program::Target& target;
  InferenceShape shape;  // its prefill_tokens are a maximum, lowered if memory is short
  std::string_view sequences_key = "batch";  // the recipe's key of shape.sequences
};

struct PlannedInference : PlannedJob {
  InferenceSpec spec;
};

// Plans with the largest prefill chunk that fits, halving it down to kMinPrefillTokens. The process
// is measured once, and only if host_memory is limited. Throws UserError with exit code 3 and the
// cheapest change when none fits; other UserErrors for an adapter that does not belong to this
// model.
PlannedInference assemble_inference(const InferenceInputs& inputs, const MeasureProcess& measure);

// How many sequences of the shape's capacity the pools of keys and values hold.
struct PlannedServing : PlannedInference {
  int64_t held_sequences = 0;
};

// The same with pools as large as the memory allows that is left, at least for one sequence. The
// shape's number of sequences says how many run at one time, whatever the pools hold.
PlannedServing assemble_serving(const InferenceInputs& inputs, const MeasureProcess& measure);

}  // namespace snug::plan
