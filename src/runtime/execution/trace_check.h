// Compares what a backend did with the program that it was given.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/trace.h"
#include "program/ir/program.h"
#include "program/work/batch_bounds.h"

namespace snug::runtime {

// The program that was run, and what the host knows about the batch (Executor::bounds).
struct Planned {
  const program::Program& program;
  const program::BatchBounds& bounds;
};

// How one run of this operation differs from the plan; empty where it does not.
std::vector<std::string> differences(const Planned& planned, size_t operation,
                                     const backends::Trace& trace);
// A sentence for each operation that did not run exactly once as the program says: with another
// kind, channel or decision, with a class but no choice within it, with other bytes, with more or
// fewer launches, or with more or less work than the batch asks for, unless the operation says that
// it ran for all that the shapes allow. Empty where all agree. `traces` has one entry for each
// operation of one run (Executor::run_traced).
std::vector<std::string> differences(const Planned& planned,
                                     std::span<const backends::Trace> traces);

// Fails a CHECK where a program that the runtime performs differs from its plan. `bytes` is the
// share of each operation that this rank does; an operation with none must not have run. Empty:
// this rank does everything that is planned.
void check_performed(const program::Program& program, std::span<const backends::Trace> traces,
                     std::span<const int64_t> bytes = {});

}  // namespace snug::runtime
