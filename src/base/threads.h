// How many threads a key of the recipe means, and what the system lets this process use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace snug::base {

// Numbers of the processors that this process may run on, ascending: its affinity, which taskset,
// Slurm, launchers of MPI and containers set.
std::vector<int> allowed_processors();

// How much processor time a control group (version 2) gives its processes together.
struct ProcessorQuota {
  std::string group;      // the path of the group that sets it
  double processors = 0;  // 1.5: the time of one and a half
};

// The least of those of this process's group and the groups around it; nothing where none sets one.
std::optional<ProcessorQuota> processor_quota();

// `wanted`, or where it is 0 one for each processor that this process may use: no more than it may
// run on, nor than its quota gives it whole, and at least one.
int thread_count(int64_t wanted);

}  // namespace snug::base
