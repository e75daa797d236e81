// The memory reader: what a job's arenas hold at their peak. Nothing is estimated: offsets and
// lifetimes come from the layout that the executor will use.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/job.h"

namespace snug::plan {

struct LiveTensor {
  std::string name;
  program::Role role = program::Role::activation;
  int32_t layer = -1;
  int64_t bytes = 0;
};

struct SpaceReport {
  int64_t peak_bytes = 0;                  // the arena
  int64_t lower_bound_bytes = 0;           // the largest sum of live bytes
  std::map<std::string, int64_t> by_role;  // at the peak; sums to lower_bound_bytes or less
  std::map<int32_t, int64_t> by_layer;     // at the peak; -1: no layer
  std::string peak_program;
  int32_t peak_index = -1;       // operation in peak_program
  std::string peak_operation;    // its kind and what it writes
  std::vector<LiveTensor> live;  // at the peak, largest first
};

struct MemoryReport {
  std::array<SpaceReport, program::kSpaceCount> spaces;
  const SpaceReport& device() const { return spaces[0]; }
};

MemoryReport read_memory(const Job& job);

}  // namespace snug::plan
