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
// A card's backend that takes memory outside of the arenas while operations are prepared, once: of
// the card, or pinned memory of the host.
class Hoarding final : public testing::OnCard {
 public:
  explicit Hoarding(Space space) : space_(space) {}
  ~Hoarding() override { space_ == Space::device ? cudaFree(taken_) : cudaFreeHost(taken_); }
  std::unique_ptr<backends::Prepared> prepare(const program::OperationView& view) override {
    if (taken_ == nullptr) {
      EXPECT_EQ(space_ == Space::device ? cudaMalloc(&taken_, kMebibyte)
                                        : cudaHostAlloc(&taken_, kMebibyte, cudaHostAllocDefault),
                cudaSuccess);
    }
    return OnCard::prepare(view);
  }

 private:
  const Space space_;
  void* taken_ = nullptr;
};

// By how much what lies outside of the arenas has grown, by the driver's count, once a backend has
// all that it needs. The arena itself is what was planned.
int64_t grown_outside(backends::Backend& backend) {
  const int64_t before = backend.device()->outside_bytes;
  const plan::Job job = tiny_job(backend);
  const Executor executor(job, backend);
  EXPECT_EQ(allocated_arena_bytes(Space::device), planned_bytes(job, Space::device));
  return backend.device()->outside_bytes - before;
}

// Which takes no memory of the emulated card for what it loads and records.
TEST(AllocatedMemory, OutsideOfArenasOnACardIsWhatABackendTakes) {
  testing::OnCard backend;
  EXPECT_EQ(grown_outside(backend), 0);
  Hoarding hoarding(Space::device);
  EXPECT_EQ(grown_outside(hoarding), kMebibyte);
}

int64_t pinned_beyond_plan(backends::Backend& backend) {
  const plan::Job job = tiny_job(backend);
  const Executor executor(job, backend);
  EXPECT_GT(planned_bytes(job, Space::pinned_host), 0);
  return allocated_arena_bytes(Space::pinned_host).value() - planned_bytes(job, Space::pinned_host);
}

TEST(AllocatedMemory, ThatIsPinnedOutsideOfArenasIsSeen) {
  testing::OnCard backend;
  EXPECT_EQ(pinned_beyond_plan(backend), 0);
  Hoarding hoarding(Space::pinned_host);
  EXPECT_EQ(pinned_beyond_plan(hoarding), kMebibyte);
}
#endif

}  // namespace
}  // namespace snug::runtime
