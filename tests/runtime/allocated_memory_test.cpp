// What the system says that a job has been given is what was planned, and what it is given beyond
// that is seen.
#include <gtest/gtest.h>

#ifdef SNUG_TEST_CPU_BACKEND
#include "backends/cpu/cpu_backend.h"
#endif
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using backends::allocated_arena_bytes;
using program::Space;

constexpr std::array kSpaces{Space::device, Space::pinned_host, Space::host};

int64_t planned_bytes(const plan::Job& job, Space space) {
  return job.layout.spaces[static_cast<size_t>(space)].arena_bytes;
}

TEST(AllocatedMemory, IsWhatWasPlanned) {
#ifdef SNUG_TEST_CPU_BACKEND
  for (const char* backend : {"reference", "cpu"}) {
#else
  for (const char* backend : {SNUG_TEST_BACKEND}) {
#endif
    SCOPED_TRACE(backend);
    testing::TinyOptions options;
    options.backend = backend;
    {
      const testing::TinyRun run(options);
      for (const Space space : kSpaces)
        EXPECT_EQ(allocated_arena_bytes(space), planned_bytes(run.job(), space));
      EXPECT_GT(allocated_arena_bytes(Space::device), 0);
    }
    for (const Space space : kSpaces) EXPECT_EQ(allocated_arena_bytes(space), 0);
  }
}

#ifdef SNUG_TEST_CPU_BACKEND
constexpr int64_t kMebibyte = 1 << 20;

// Gives the executor more than it asks for.
class Generous final : public backends::cpu::CpuBackend {
 public:
  Generous() : CpuBackend({.threads = 1}) {}
  std::unique_ptr<backends::Arena> allocate(Space space, int64_t bytes) override {
    return CpuBackend::allocate(space, bytes + (space == Space::device ? kMebibyte : 0));
  }
};

TEST(AllocatedMemory, OfAnArenaThatIsTooLargeIsSeen) {
  Generous backend;
  const plan::Job job = plan::plan_training(testing::spec_of({}), backend);
  const Executor executor(job, backend);
  EXPECT_EQ(allocated_arena_bytes(Space::device), planned_bytes(job, Space::device) + kMebibyte);
}

TEST(AllocatedMemory, OfAnArenaBesidesTheJobsIsSeen) {
  const testing::TinyRun run;
  backends::cpu::CpuBackend backend({.threads = 1});
  const auto more = backend.allocate(Space::device, kMebibyte);
  EXPECT_EQ(allocated_arena_bytes(Space::device),
            planned_bytes(run.job(), Space::device) + kMebibyte);
}
#endif

}  // namespace
}  // namespace snug::runtime
