#include "comm/processor_share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/threads.h"

namespace snug::comm {

ProcessorUse own_processor_use() {
  ProcessorUse use;
  // The id of this boot of the machine, which is the same in all its containers, whatever host
  // names they have.
  std::ifstream("/proc/sys/kernel/random/boot_id") >> use.machine;
  use.processors = base::allowed_processors();
  if (const std::optional<base::ProcessorQuota> quota = base::processor_quota()) {
    use.quota_group = quota->group;
    use.quota = quota->processors;
  }
  return use;
}

// One line for each field.
std::string to_text(const ProcessorUse& use) {
  return fmt::format("{}\n{}\n{}\n{}", use.machine, use.quota_group, use.quota,
                     fmt::join(use.processors, " "));
}

ProcessorUse processor_use_of(const std::string& text) {
  std::istringstream stream(text);
  ProcessorUse use;
  std::string quota;
  std::getline(stream, use.machine);
  std::getline(stream, use.quota_group);
  std::getline(stream, quota);
  std::istringstream(quota) >> use.quota;
  use.processors = {std::istream_iterator<int>(stream), {}};
  return use;
}

int threads_of_ranks(const std::vector<ProcessorUse>& ranks) {
  std::map<std::pair<std::string, int>, int> sharers;          // ranks that may use each processor
  std::map<std::pair<std::string, std::string>, int> members;  // ranks in each quota group
  for (const ProcessorUse& use : ranks) {
    for (const int processor : use.processors) ++sharers[{use.machine, processor}];
    ++members[{use.machine, use.quota_group}];
  }
  std::optional<double> least;
  for (const ProcessorUse& use : ranks) {
    double share = 0;
    for (const int processor : use.processors) share += 1.0 / sharers[{use.machine, processor}];
    if (!use.quota_group.empty())
      share = std::min(share, use.quota / members[{use.machine, use.quota_group}]);
    least = std::min(least.value_or(share), share);
  }
  // Three thirds must give a whole, despite rounding.
  constexpr double kRounding = 1e-6;
  return std::max(1, static_cast<int>(least.value_or(1) + kRounding));
}

}  // namespace snug::comm
