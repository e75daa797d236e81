// Holds what a backend did against the program that it was given.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/trace.h"
#include "program/program.h"

namespace snug::runtime {

// How this operation, run once, differs from what the program says; empty where it does not.
std::vector<std::string> differences(const program::Program& program, size_t operation,
                                     const backends::Trace& trace);
// A sentence for each operation that did not run once as the program says: another kind, channel or
// decision, other bytes, or more than its extent holds. Empty where all did. `traces`: one for each
// operation, of one run (Executor::run_traced).
std::vector<std::string> differences(const program::Program& program,
                                     std::span<const backends::Trace> traces);

// Fails a CHECK where there is such a sentence.
void check_performed(const program::Program& program, std::span<const backends::Trace> traces);

}  // namespace snug::runtime
