// What a job of many layers takes, from plans of the same job with few. Layers are alike, so the
// sum of live bytes at each operation of a program grows by the same amount with every layer, and
// so does the time of a step. A program's largest sum is a straight line, or one that bends upwards
// where another operation becomes the peak, so that following it from its beginning never goes
// above it. The lower bound is that of the largest program.
//
// An arena may be larger than its lower bound by what layout does not use: a job that fits by its
// lower bound is planned whole before anyone is told that it fits. Pure functions.
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
  // The part of these that lasts longer than a program.
  Bytes lasting_bytes{};
  // The rest, of the largest program of a micro-batch and of the largest of the others.
  Bytes micro_bytes{};
  Bytes other_bytes{};
  std::vector<ProgramTime> programs;  // of a step
  double step_seconds = 0;            // by the clock, rows full
};

// The size of a job that is planned.
JobSize size_of(const Job& job, const TrainingSpec& spec, const Rates& rates);

// The size of a job without planning it whole: from two short jobs, or the job itself where it has
// hardly more layers than they. Windows of attention are taken to be those of the first layers.
// `window_is_small`: memory for copies holds no more than a few layers' do, so that it is used up
// in the short jobs too; else a job with such memory is planned whole.
JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target, const Rates& rates,
                       bool window_is_small = false);
// The size with batches that are expected in place of full rows.
JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target, const Rates& rates,
                       const program::ExpectedBounds& expected, bool window_is_small = false);

}  // namespace snug::plan
