// measured.json: what a run measured, under the keys that plan.json has for what was planned.
// Nothing in it is read off the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/document/document.h"
#include "program/work/device_facts.h"

namespace snug::plan {

struct Measured {
  // Bytes of the arenas; nothing where there is no count. device_bytes is the device's arena as its
  // driver or the kernel counts it: on a GPU by how much the driver's free memory fell when the
  // arena was allocated; what else the GPU's memory holds is in `card`. host_bytes are the arenas
  // in pinned and pageable host memory, with what else was pinned, by the kernel's count or that of
  // the calls that allocate it.
  std::optional<int64_t> device_bytes;
  std::optional<int64_t> host_bytes;
  // What the process has next to the arenas in host memory; nothing where the kernel has no count
  // of those.
  std::optional<int64_t> outside_bytes;
  int64_t reading_bytes = 0;   // resident peak before the job began; 0: unknown
  int64_t resident_bytes = 0;  // resident peak of the whole run
  // The facts of a device with memory of its own, asked after the run: their outside_bytes are what
  // the driver counts beyond the arena, the same that the plan states with what it reserves for
  // kernels and graphs.
  std::optional<program::DeviceFacts> card;
  double step_tokens = 0;   // mean of the steps
  double step_seconds = 0;  // median of the steps; 0: none was measured
  double load_seconds = 0;  // of weights and adapter, before the first step
  // Of the log-probabilities that are kept, likewise; nothing where none were made.
  std::optional<double> reference_seconds{};
};

// Pretty-printed JSON. Bytes are integers, or null where they were not measured; times are seconds.
// Without a measured step the keys of a step are left out.
std::string to_json(const Measured& measured);

// A figure as it was planned and as it was measured, for people.
struct ComparedFigure {
  std::string name;
  std::string planned;
  std::string measured;  // or "not measured"
  std::string ratio;     // measured / planned; "-" where there is none
};
std::vector<ComparedFigure> compared_figures(const PlanDocument& planned, const Measured& measured);

// The compared figures as text: one line for each under a head, no newline at the end.
std::string comparison(const PlanDocument& planned, const Measured& measured);

}  // namespace snug::plan
