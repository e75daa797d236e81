// Holds what a backend did against the program that it was given.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/trace.h"
#include "program/ir/program.h"
#include "program/work/batch_bounds.h"

namespace snug::runtime {

// What was to run, and what the host knows of the batch (Executor::bounds).
struct Planned {
  const program::Program& program;
  const program::BatchBounds& bounds;
};

// How this operation, run once, differs from what is planned; empty where it does not.
std::vector<std::string> differences(const Planned& planned, size_t operation,
                                     const backends::Trace& trace);
// A sentence for each operation that did not run once as the program says: another kind, channel or
// decision, a decided class without the way that was chosen of it, other bytes, more or fewer
// launches, or more or less than the batch asks for, except where it ran for all that shapes allow
// and says so. Empty where all did. `traces`: one for each operation, of one run
// (Executor::run_traced).
std::vector<std::string> differences(const Planned& planned,
                                     std::span<const backends::Trace> traces);

// Fails a CHECK where a program that the runtime performs has such a sentence. `bytes`: what of
// each operation is this rank's to do; where that is nothing it must not have run; empty: all that
// is planned.
void check_performed(const program::Program& program, std::span<const backends::Trace> traces,
                     std::span<const int64_t> bytes = {});

}  // namespace snug::runtime
