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

#include "plan/job.h"
#include "plan/rates.h"
#include "program/target.h"

namespace snug::plan {

struct JobSize {
  std::array<int64_t, program::kSpaceCount> lower_bound_bytes{};
  double step_seconds = 0;  // by the clock, rows full
};

// Of a job that is planned.
JobSize size_of(const Job& job, const TrainingSpec& spec, const Rates& rates);

// The same without planning the whole: from two short jobs, or the job itself where it has hardly
// more layers than they. Windows of attention are taken to be those of the first layers.
JobSize size_by_layers(const TrainingSpec& spec, const program::Target& target, const Rates& rates);

}  // namespace snug::plan
