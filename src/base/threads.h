// How many threads a recipe's setting stands for, and which processors the system lets this process
// use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace snug::base {

// The numbers of the processors that this process may run on, ascending: its affinity mask, which
// taskset, Slurm, MPI launchers and containers set.
std::vector<int> allowed_processors();

// How much processor time a control group (version 2) gives all its processes together.
struct ProcessorQuota {
  std::string group;      // the path of the group that sets it
  double processors = 0;  // 1.5 is the time of one and a half processors
};

// The smallest quota of this process's control group and of the groups around it; nothing where
// none sets one.
std::optional<ProcessorQuota> processor_quota();

// `wanted`, or one thread per usable processor where `wanted` is 0. The result is at most the
// number of processors this process may run on and the whole processors of its quota, and at least
// one.
int thread_count(int64_t wanted);

}  // namespace snug::base
