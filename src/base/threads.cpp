#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

namespace snug::base {
namespace {

namespace fs = std::filesystem;

const fs::path kGroups = "/sys/fs/cgroup";

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

// The control group of this process, from the line "0::/path".
fs::path own_group() {
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("0::/")) return kGroups / line.substr(4);
  return kGroups;
}

// cpu.max holds "QUOTA PERIOD", or "max PERIOD" where there is no limit.
std::optional<double> quota_of(const fs::path& group) {
  std::ifstream stream(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (!(stream >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  // The kernel needs a mask with room for every processor that it could have, so larger ones are
  // tried.
  constexpr int kMaxProcessors = 1 << 16;
  for (int count = CPU_SETSIZE; count <= kMaxProcessors; count *= 2) {
    const std::unique_ptr<cpu_set_t, FreeSet> set(CPU_ALLOC(count));
    const size_t bytes = CPU_ALLOC_SIZE(count);
    if (set == nullptr) break;
    if (sched_getaffinity(0, bytes, set.get()) == 0) {
      for (int processor = 0; processor < count; ++processor)
        if (CPU_ISSET_S(processor, bytes, set.get())) processors.push_back(processor);
      return processors;
    }
    if (errno != EINVAL) break;
  }
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (int processor = 0; processor < all; ++processor) processors.push_back(processor);
  return processors;
}

std::optional<ProcessorQuota> processor_quota() {
  std::optional<ProcessorQuota> least;
  fs::path group = own_group().lexically_normal();
  while (true) {
    const std::optional<double> processors = quota_of(group);
    if (processors && (!least || *processors < least->processors))
      least = ProcessorQuota{group.string(), *processors};
    if (group == kGroups || !group.has_relative_path()) return least;
    group = group.parent_path();
  }
}

int thread_count(int64_t wanted) {
  if (wanted > 0) return static_cast<int>(wanted);
  const auto allowed = static_cast<int>(allowed_processors().size());
  const std::optional<ProcessorQuota> quota = processor_quota();
  return std::max(1, quota ? std::min(allowed, static_cast<int>(quota->processors)) : allowed);
}

}  // namespace snug::base
