// What the system says that a job has been given is what was planned, and what it is given beyond
// that is seen.
#include <gtest/gtest.h>

#include "tested_backends.h"
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

constexpr int64_t kMebibyte = 1 << 20;

// Gives the executor more than it asks for.
template <typename Tested>
class Generous final : public Tested {
 public:
  std::unique_ptr<backends::Arena> allocate(Space space, int64_t bytes) override {
    return Tested::allocate(space, bytes + (space == Space::device ? kMebibyte : 0));
  }
};

plan::Job tiny_job(const program::Target& target) {
  return plan::plan_training(testing::spec_of({}), target);
}

// By which more was given on the device than is planned, once the backend has all that it needs.
int64_t given_beyond_plan(backends::Backend& backend) {
  const plan::Job job = tiny_job(backend);
  const Executor executor(job, backend);
  return allocated_arena_bytes(Space::device).value() - planned_bytes(job, Space::device);
}

template <typename Tested>
class AllocatedMemoryOn : public ::testing::Test {};
TYPED_TEST_SUITE(AllocatedMemoryOn, testing::TestedBackends);

TYPED_TEST(AllocatedMemoryOn, OfAnArenaThatIsTooLargeIsSeen) {
  Generous<TypeParam> backend;
  EXPECT_EQ(given_beyond_plan(backend), kMebibyte);
}

TYPED_TEST(AllocatedMemoryOn, OfAnArenaBesidesTheJobsIsSeen) {
  TypeParam backend;
  const plan::Job job = tiny_job(backend);
  std::unique_ptr<backends::Arena> more;
  {
    const Executor executor(job, backend);
    more = backend.allocate(Space::device, kMebibyte);
    EXPECT_EQ(allocated_arena_bytes(Space::device), planned_bytes(job, Space::device) + kMebibyte);
  }
  EXPECT_EQ(allocated_arena_bytes(Space::device), kMebibyte);
}

#ifndef SNUG_TEST_CPU_BACKEND
// A card's backend that takes memory outside of the arenas while operations are prepared, once.
class Hoarding final : public testing::OnCard {
 public:
  ~Hoarding() override { cudaFree(taken_); }
  std::unique_ptr<backends::Prepared> prepare(const program::OperationView& view) override {
    if (taken_ == nullptr) {
      EXPECT_EQ(cudaMalloc(&taken_, kMebibyte), cudaSuccess);
    }
    return OnCard::prepare(view);
  }

 private:
  void* taken_ = nullptr;
};

TEST(AllocatedMemory, OfABackendOutsideOfArenasIsSeen) {
  Hoarding backend;
  EXPECT_EQ(given_beyond_plan(backend), kMebibyte);
}
#endif

}  // namespace
}  // namespace snug::runtime
