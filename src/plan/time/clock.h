// The clock: how long the programs of a step take. It walks the same list as the executor with one
// timeline for each channel: an operation begins when its channel is free, what it reads has been
// written, and what it overwrites has been read; a transfer, moreover, when all before it in the
// list that computes is done; and so does what is placed on the host next to a device. With one
// channel, a program takes the sum of its operations. Where the host goes on after the device, or
// the device after the host, a join is added (Roofline::join_seconds). What ranks do together takes
// the time of what computes where no processor is left for it (processor_sharing.h), and what
// computes takes as long as the memory that they share allows.
//
// What it leaves out: reading a batch and writing a line of metrics between programs
// (microseconds), channels taking bandwidth from one another, and on a card that where a recording
// ends for work of the host (runtime/execution/partitions.h) all that was queued is waited for.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/job/job.h"
#include "plan/time/rates.h"

namespace snug::plan {

struct OperationTime : Estimate {
  int32_t operation = 0;  // index into the program's list
  double start_seconds = 0;
};

// Its seconds are those until the last channel is done; what they rest on is said of what each
// operation waited for, back to the beginning: what goes on next to that takes none of them.
struct Timeline : Estimate {
  std::vector<OperationTime> operations;  // in list order
};

// `bounds`: of a batch that is there, of one that is expected, or {} for all that shapes allow.
Timeline simulate(const program::Program& program, const Rates& rates,
                  const program::BatchBounds& bounds);

// Of a step: of its programs, as often as it runs each. A program that the job does not have takes
// no time.
Estimate step_estimate(const Job& job, int64_t accumulation, const Rates& rates,
                       const program::ExpectedBounds& expected);
double step_seconds(const Job& job, int64_t accumulation, const Rates& rates,
                    const program::ExpectedBounds& expected);

// A run of a program: how long it takes, and how long each channel is busy in it.
struct ProgramTime {
  program::ProgramName name;
  double seconds = 0;
  std::map<program::Channel, double> busy;
};
// The times of a step's programs, in the order of the step.
std::vector<ProgramTime> program_times(const Job& job, int64_t accumulation, const Rates& rates,
                                       const program::ExpectedBounds& expected);

// How long each channel is busy in a step. What the step takes beyond the channel `compute` is what
// it waits for the others.
std::map<program::Channel, double> busy_seconds(const Job& job, int64_t accumulation,
                                                const Rates& rates,
                                                const program::ExpectedBounds& expected);

// Seconds of the programs that load, before the first step: files at the rate of the storage,
// initial values at that of the device's memory. What it leaves out: a conversion or quantisation
// that is slower than the files, and opening them.
double load_seconds(const Job& job, const Rates& rates);
// What that is by: Rates::storage_basis() where files are read, else Rates::basis().
Basis load_basis(const Job& job, const Rates& rates);

}  // namespace snug::plan
