// recompute=auto: chooses what each layer recomputes, so that the job is as fast as possible and
// fits the memory.
//
// Layers are alike, so a choice is the number of layers for each mode. More than two modes, and a
// third for a single layer, gain nothing: with two modes, less memory is left over than one layer
// takes, and the third mode uses that. The last layers keep the most: the backward pass begins with
// them, so everything that they kept is free again by the time the first layers are recomputed. If
// the device has its own memory, checkpoints may be moved to the host.
//
// It does not choose for individual tensors of a layer. Not thread-safe.
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
  // Device memory if all layers kept everything; 0: recompute was not left open.
  int64_t nothing_again_bytes = 0;
};

// What choices are compared by. Everything that it refers to must outlive it.
struct ChoiceInputs {
  int64_t device_bytes = 0;  // limit of the arena; 0: no limit
  HostBudget host_budget{};  // the limit of host arenas; empty: none
  const program::Target& target;
  const Rates& rates;
  const program::ExpectedBounds& expected;
};

// A choice that fits is better than one that does not; then the faster one is better or, if neither
// fits, the one that takes less memory.
bool is_better(const RecomputeChoice& a, const RecomputeChoice& b);

// Plans the job as `spec` describes it. A job that cannot fit by the lower bounds of its arenas is
// not laid out (training_programs.h); `device_bytes` is then a lower bound.
RecomputeChoice planned_choice(const TrainingSpec& spec, const ChoiceInputs& inputs);

// The best choice for a job whose other choices are made. `forms`: the job with any modes and,
// where activation_offloading is open, also the same job with offloading. Where nothing fits, the
// choice that takes the least memory. Plans one job if nothing needs to be recomputed, otherwise up
// to a dozen for each form.
RecomputeChoice choose_recompute(std::span<const TrainingSpec> forms, const ChoiceInputs& inputs);

}  // namespace snug::plan
