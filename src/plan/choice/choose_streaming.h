// Chooses how tensors stream from host memory, as far as the recipe leaves it open: where weights
// are updated, and how much device memory is for copies.
#pragma once

#include <functional>

#include "formats/recipe/recipe.h"
#include "plan/job/job.h"
#include "plan/time/rates.h"
#include "program/ir/program.h"

namespace snug::plan {

// The bytes of host memory that the arenas of a job may take.
using HostBudget = std::function<int64_t(const Job&)>;

struct StreamingChoice {
  bool chooses_window = false;   // otherwise the spec's window is used
  bool chooses_updates = false;  // whether updates run on the device or on the host
  int64_t device_bytes = 0;      // limit of the device's arena; 0: no limit
  HostBudget host_budget{};      // empty: no limit
  bool is_open() const { return chooses_window || chooses_updates; }
};

// The choices that the recipe leaves open; none on a CPU, whose memory is the host's.
StreamingChoice streaming_choice(const formats::Recipe& recipe, const TrainingSpec& spec,
                                 const program::Target& target);

// The spec's stream options with the open choices made: among the jobs whose arenas fit device and
// host, the one with the shortest step, or one within 1 % of that with the smallest device arena.
// Where none fits both, chosen among those that fit the device. Plans up to 16 jobs, then some
// exactly.
passes::StreamOptions choose_streaming(const TrainingSpec& spec, const StreamingChoice& choice,
                                       const program::Target& target, const Rates& rates,
                                       const program::ExpectedBounds& expected);

}  // namespace snug::plan
