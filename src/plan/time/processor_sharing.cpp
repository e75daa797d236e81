#include "plan/time/processor_sharing.h"

#include <algorithm>
#include <thread>

#include "base/threads.h"

namespace snug::plan {

ProcessorSharing share_processors(int64_t ranks, int64_t threads, const Processors& processors) {
  ProcessorSharing sharing;
  if (ranks <= 1) return sharing;
  const int64_t computing = ranks * threads;
  const int64_t all = ranks * (threads + 1);
  if (processors.allowed >= computing) {
    sharing.collectives_compute = all > processors.allowed;
    return sharing;
  }
  const auto per_processor = [](int64_t count, int64_t of) {
    return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(1, of));
  };
  const int64_t online = std::max(processors.online, processors.allowed);
  sharing.threads_per_processor =
      std::max({1.0, per_processor(computing, online), per_processor(threads, processors.allowed)});
  sharing.collectives_compute = all > online || threads + 1 > processors.allowed;
  return sharing;
}

Processors processors_here() {
  Processors processors{.allowed = base::thread_count(0),
                        .online = std::max<int64_t>(1, std::thread::hardware_concurrency())};
  if (const auto quota = base::processor_quota())
    processors.online =
        std::clamp<int64_t>(static_cast<int64_t>(quota->processors), 1, processors.online);
  return processors;
}

}  // namespace snug::plan
