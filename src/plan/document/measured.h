// measured.json: the measurements of a run, under the same keys as the planned figures in
// plan.json. No value is copied from the plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/document/document.h"
#include "program/work/device_facts.h"

namespace snug::plan {

// What a run read of one source of its data.
struct MeasuredSource {
  std::string name;  // as the recipe names it
  bool evaluates = false;
  int64_t records = 0;
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t trained_tokens = 0;  // that carry loss
};

struct Measured {
  // Bytes of the arenas; nothing where there is no count. device_bytes is the device's arena as its
  // driver or the kernel counts it: on a GPU, by how much the driver's free memory fell when the
  // arena was allocated; other memory of the GPU is in `card`. host_bytes are the arenas in pinned
  // and pageable host memory, together with other pinned memory, as counted by the kernel or by the
  // calls that allocate it.
  std::optional<int64_t> device_bytes;
  std::optional<int64_t> host_bytes;
  // The process's host memory outside the arenas; nothing where the kernel does not count the
  // arenas.
  std::optional<int64_t> outside_bytes;
  int64_t reading_bytes = 0;   // peak resident memory when the data were read; 0: unknown
  int64_t resident_bytes = 0;  // peak resident memory of the whole run
  // The facts of a device with memory of its own, queried after the run. Their outside_bytes are
  // what the driver counts beyond the arena; the plan states the same quantity, including what it
  // reserves for kernels and graphs.
  std::optional<program::DeviceFacts> card;
  double step_tokens = 0;   // mean over the steps
  double step_seconds = 0;  // median over the steps; 0: none was measured
  double load_seconds = 0;  // loading weights and adapter before the first step
  // The time for computing the reference log-probabilities, if they are kept; nothing if there were
  // none.
  std::optional<double> reference_seconds{};
  // The time in which the last evaluation generated its answers; nothing if none did.
  std::optional<double> answers_seconds{};
  std::vector<MeasuredSource> data{};
};

// Pretty-printed JSON. Bytes are integers, or null if not measured; times are seconds. If no step
// was measured, the keys about steps are left out.
std::string to_json(const Measured& measured);

// A figure as planned and as measured, for people.
struct ComparedFigure {
  std::string name;
  std::string planned;
  std::string measured;  // "not measured" if it was not
  std::string ratio;     // measured / planned; "-" if there is none
};
std::vector<ComparedFigure> compared_figures(const PlanDocument& planned, const Measured& measured);

// The compared figures as text: one line each under a header, without a newline at the end.
std::string comparison(const PlanDocument& planned, const Measured& measured);

}  // namespace snug::plan
