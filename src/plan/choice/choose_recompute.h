// recompute=auto: the fastest choice of what each layer computes again that fits the memory.
//
// Layers are alike, so a choice is how many of them have which mode. Two modes, and a third for a
// single layer, are as good as any number: with two alone the memory that is left over is less than
// what a layer takes, and the third uses that up. The layers that keep most are the last, with
// which the backward pass begins: where the first layers are computed again, all that the last ones
// kept is free. Next to a device with memory of its own, what layers keep may wait on the host.
//
// What it does not do: choose for each tensor of a layer. One thread.
#pragma once

#include <cstdint>
#include <span>

#include "passes/gradient/recompute.h"
#include "plan/choice/choose_streaming.h"
#include "plan/job/job.h"
#include "plan/time/rates.h"
#include "program/ir/program.h"

namespace snug::plan {

struct RecomputeChoice {
  TrainingSpec spec;
  Job job;
  int64_t device_bytes = 0;
  double step_seconds = 0;
  bool fits = false;
  int64_t nothing_again_bytes = 0;  // of the device, if all layers kept all; 0: nothing was chosen
};

// What choices are compared by. What is referred to must outlive it.
struct ChoiceInputs {
  int64_t device_bytes = 0;  // of the arena, at most; 0: any number
  HostBudget host_budget{};  // may be empty
  const program::Target& target;
  const Rates& rates;
  const program::ExpectedBounds& expected;
};

// What fits comes first, then what is faster; of what does not fit what takes less.
bool is_better(const RecomputeChoice& a, const RecomputeChoice& b);

// The job as `spec` says it. One that cannot fit by the lower bounds of its arenas is not laid out
// (training_programs.h), and `device_bytes` is then such a bound.
RecomputeChoice planned_choice(const TrainingSpec& spec, const ChoiceInputs& inputs);

// The best of a job whose other choices are made. `forms`: the job with any modes, and where
// activation_offloading is open also the job with it, which differs in nothing else. Where nothing
// fits, what takes the least memory. Plans one job where nothing need be computed again, else up to
// a dozen of each form.
RecomputeChoice choose_recompute(std::span<const TrainingSpec> forms, const ChoiceInputs& inputs);

}  // namespace snug::plan
