// Extrapolates the memory and time of a job with many layers from plans of the same job with few.
// Layers are alike, so each layer adds the same amount to the live bytes at each operation of a
// program, and to the time of a step. The largest live bytes of a program are therefore a linear
// function of the layers, or a convex one where another operation becomes the peak. So
// extrapolating from few layers never gives too much. The lower bound is that of the largest
// program.
//
// An arena may be larger than its lower bound, by gaps in the layout. So a job that fits by its
// lower bound is planned in full before it is said to fit. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/job/job.h"
#include "plan/time/clock.h"
#include "plan/time/rates.h"
#include "program/ir/program.h"

namespace snug::plan {

struct JobSize {
  using Bytes = std::array<int64_t, program::kSpaceCount>;
  Bytes lower_bound_bytes{};
  // The part of these bytes that lasts longer than a program.
  Bytes lasting_bytes{};
  // The remaining bytes: of the largest micro-batch program, and of the largest other program.
  Bytes micro_bytes{};
  Bytes other_bytes{};
  std::vector<ProgramTime> programs;  // of a step
  double step_seconds = 0;            // by the clock, with full rows
};

// The size of a planned job.
JobSize size_of(const Job& job, const TrainingSpec& spec, const Rates& rates);

// The size of a job without planning it in full: extrapolated from two short jobs, or from the job
// itself if it has hardly more layers than these. All layers are assumed to have the attention
// windows of the first ones. `window_is_small`: memory for copies holds no more than the copies of
// a few layers, so that the short jobs use all of it; otherwise a job with such memory is planned
// in full.
JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target, const Rates& rates,
                       bool window_is_small = false);
// The same with expected batches in place of full rows.
JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target, const Rates& rates,
                       const program::ExpectedBounds& expected, bool window_is_small = false);

}  // namespace snug::plan
