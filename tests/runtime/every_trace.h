// What tests of traces hold each program of a job to.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "program/kinds/kind.h"
#include "program/work/decisions.h"
#include "runtime/execution/trace_check.h"
#include "traced_batch.h"

namespace snug::testing {

// perform_test.cpp is about the others.
inline bool is_run_by_backends(const program::Program& program) {
  return program.operations.empty() ||
         program::traits_of(program.operations.front()).performer != program::Performer::runtime;
}

// Whether the fastest of several ways was to be chosen for a part of it.
inline bool is_timed(const program::Operation& operation) {
  return std::ranges::any_of(program::decisions_of(operation), [&](const auto& decision) {
    return program::is_class(operation.kind(), decision.first, decision.second);
  });
}

// Each decision of each operation, changed in the trace alone, is seen.
inline void expect_changes_seen(const runtime::Planned& planned,
                                const std::vector<backends::Trace>& traces) {
  const program::Program& program = planned.program;
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const std::string what =
        fmt::format("{} of {}", name_of(program.operations[i].kind()), program.name);
    const auto differences_with = [&](const auto& change) {
      backends::Trace changed = traces[i];
      change(changed);
      return runtime::differences(planned, i, changed);
    };
    const auto expect_seen = [&](const auto& change) {
      EXPECT_EQ(differences_with(change).size(), 1U) << what;
    };
    for (size_t d = 0; d < traces[i].decisions.size(); ++d)
      expect_seen([&](backends::Trace& trace) { trace.decisions[d].second += 1; });
    // So is a note that is left out, where something was decided and the batch asked for work.
    for (size_t d = 0; d < traces[i].decisions.size(); ++d) {
      const auto& [name, value] = traces[i].decisions[d];
      if (value == program::undecided_value(traces[i].kind, name)) continue;
      if (traces[i].extent == program::Extent()) continue;
      const auto leave_out = [&](backends::Trace& trace) {
        trace.decisions.erase(trace.decisions.begin() + static_cast<std::ptrdiff_t>(d));
      };
      EXPECT_FALSE(differences_with(leave_out).empty()) << what << " without " << name;
    }
    if (!traces[i].pieces.empty())
      expect_seen([](backends::Trace& trace) { trace.pieces.clear(); });
    for (size_t p = 0; p < traces[i].pieces.size(); ++p)
      expect_seen([&](backends::Trace& trace) { trace.pieces[p] += 1; });
    expect_seen([&](backends::Trace& trace) {
      using program::Channel;
      const bool is_between_ranks = trace.channel == Channel::interconnect;
      trace.channel = is_between_ranks ? Channel::compute : Channel::interconnect;
    });
    expect_seen([&](backends::Trace& trace) { trace.joined = !trace.joined; });
    for (const int64_t more : {-1, 1}) {
      expect_seen([&](backends::Trace& trace) { trace.launches += more; });
      expect_seen([&](backends::Trace& trace) { trace.launches_spared += more; });
    }
    // Launches that were left out are not spared where nothing was timed.
    if (!is_timed(program.operations[i]))
      for (const int64_t spared : {-1, 1})
        expect_seen([&](backends::Trace& trace) {
          trace.launches -= spared;
          trace.launches_spared += spared;
        });
    if (traces[i].bytes > 0) expect_seen([&](backends::Trace& trace) { trace.bytes -= 1; });
  }
}

// Every program of the job that a backend runs does what it says.
inline void expect_traces_equal(const plan::Job& job, backends::Backend& backend) {
  runtime::Executor executor(job, backend);
  for (const program::Program& program : job.programs) {
    if (!is_run_by_backends(program)) continue;
    const program::ProgramName name = typed_name(program);
    fill_batch(program, executor);
    const std::vector<backends::Trace> traces = executor.run_traced(name);
    const runtime::Planned planned{program, executor.bounds(name)};
    EXPECT_EQ(runtime::differences(planned, traces), std::vector<std::string>{});
    if (::testing::Test::HasFailure()) return;
    expect_changes_seen(planned, traces);
  }
}

}  // namespace snug::testing
