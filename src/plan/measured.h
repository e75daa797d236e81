// measured.json: what a run measured, under the keys that plan.json has for what was planned.
// Nothing in it is read off the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/document.h"
#include "program/device_facts.h"

namespace snug::plan {

struct Measured {
  int64_t device_bytes = 0;    // of the device's arena, as its driver or the kernel counts it
  int64_t host_bytes = 0;      // of the arenas in pinned and pageable host memory, likewise
  int64_t outside_bytes = 0;   // of the process, next to the arenas in host memory
  int64_t reading_bytes = 0;   // resident peak before the job began; 0: unknown
  int64_t resident_bytes = 0;  // resident peak of the whole run
  // Of a device with memory of its own, asked after the run.
  std::optional<program::DeviceFacts> card;
  double step_tokens = 0;   // mean of the steps
  double step_seconds = 0;  // median of the steps; 0: none was measured
  double load_seconds = 0;  // of weights and adapter, before the first step
};

// Pretty-printed JSON. Bytes are integers, times are seconds. Without a measured step the keys of a
// step are left out.
std::string to_json(const Measured& measured);

// Planned next to measured, with their ratio: one line for each figure, no newline at the end.
std::string comparison(const PlanDocument& planned, const Measured& measured);

}  // namespace snug::plan
