// The memory reader: reports what a job's arenas hold at their peak. Nothing is estimated: offsets
// and lifetimes come from the layout that the executor will use.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/words.h"
#include "plan/job/job.h"

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
  int32_t peak_index = -1;       // an operation of peak_program
  std::string peak_operation;    // its kind and what it writes
  std::vector<LiveTensor> live;  // at the peak, largest first
};

// The successive activities of a job, each with its own programs.
enum class Activity : uint8_t { loading, training, evaluating, generating, saving };
constexpr auto words_of(Activity) {
  return base::words<Activity>({{Activity::loading, "loading"},
                                {Activity::training, "training"},
                                {Activity::evaluating, "evaluating"},
                                {Activity::generating, "generating"},
                                {Activity::saving, "saving"}});
}

// The bytes of each space's arena that an activity uses: those that all programs share, and those
// up to which the activity's programs reach beyond them. The largest over all activities is the
// arena's size, up to alignment.
struct ActivityReport {
  Activity activity = Activity::loading;
  std::array<int64_t, program::kSpaceCount> bytes{};
};

struct MemoryReport {
  std::array<SpaceReport, program::kSpaceCount> spaces;
  std::vector<ActivityReport> activities;  // the job's activities, in their order
  const SpaceReport& device() const { return spaces[0]; }
};

MemoryReport read_memory(const Job& job);

// Bytes by role, in the order of program::Role.
using RoleBytes = std::array<int64_t, program::kRoleCount>;
int64_t total_of(const RoleBytes& bytes);

// The bytes in a space, by role, of tensors that outlast the programs of a stage, each name counted
// once.
RoleBytes shared_bytes(const Job& job, program::Stage stage, program::Space space);
// The bytes of a program's own tensors in a space during each of its operations, in list order; one
// entry if it has no operations.
std::vector<RoleBytes> live_bytes(const program::Program& program, program::Space space);

}  // namespace snug::plan
