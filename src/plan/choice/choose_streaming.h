// How tensors stream from host memory, as far as a recipe leaves it open: where weights are
// updated, and how much of the device is for copies.
#pragma once

#include <functional>

#include "formats/recipe/recipe.h"
#include "plan/job/job.h"
#include "plan/time/rates.h"
#include "program/ir/program.h"

namespace snug::plan {

// Bytes of host memory that the arenas of a job may take.
using HostBudget = std::function<int64_t(const Job&)>;

struct StreamingChoice {
  bool chooses_window = false;   // else the spec's is taken
  bool chooses_updates = false;  // on the device, or on the host
  int64_t device_bytes = 0;      // that the device's arena may take; 0: any number
  HostBudget host_budget{};      // empty: any number
  bool is_open() const { return chooses_window || chooses_updates; }
};

// What the recipe leaves open. On a processor, whose memory is the host's, nothing is.
StreamingChoice streaming_choice(const formats::Recipe& recipe, const TrainingSpec& spec,
                                 const program::Target& target);

// The spec's options with what is open chosen: of the jobs whose arenas fit the device and the
// host, the one with the shortest step, and of those within 1 % of it the one with the least memory
// for copies. Where none fits both, of those that fit the device. Plans a handful of jobs.
passes::StreamOptions choose_streaming(const TrainingSpec& spec, const StreamingChoice& choice,
                                       const program::Target& target, const Rates& rates,
                                       const program::ExpectedBounds& expected);

}  // namespace snug::plan
