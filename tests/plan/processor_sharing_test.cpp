// How many processors ranks have between them, by what a launcher let them use.
#include "plan/time/processor_sharing.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "base/threads.h"

namespace snug::plan {
namespace {

struct Case {
  const char* name;
  int64_t ranks;
  int64_t threads;
  Processors processors;
  double threads_per_processor;
  bool collectives_compute;
};

constexpr Case kCases[] = {
    {"one rank", 1, 2, {.allowed = 2, .online = 2}, 1, false},
    {"each thread has a processor, and none is left", 2, 1, {.allowed = 2, .online = 2}, 1, true},
    {"a processor is left for each rank", 2, 1, {.allowed = 4, .online = 4}, 1, false},
    {"one is left for one of two", 2, 3, {.allowed = 7, .online = 7}, 1, true},
    {"more ranks than processors", 4, 1, {.allowed = 2, .online = 2}, 2, true},
    {"a part of a machine", 2, 4, {.allowed = 8, .online = 64}, 1, true},
    {"bound to processors of their own, all busy", 4, 8, {.allowed = 8, .online = 64}, 1, true},
    {"bound, and one is left", 4, 7, {.allowed = 8, .online = 64}, 1, false},
    {"bound to fewer than their threads", 4, 8, {.allowed = 2, .online = 64}, 4, true},
};

TEST(ProcessorSharing, FollowsFromThreadsAndProcessors) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.name);
    const ProcessorSharing sharing = share_processors(each.ranks, each.threads, each.processors);
    EXPECT_EQ(sharing.threads_per_processor, each.threads_per_processor);
    EXPECT_EQ(sharing.collectives_compute, each.collectives_compute);
  }
}

// As a launcher binds a rank: it may use that one, and the machine has as many as before.
TEST(ProcessorSharing, ABoundProcessMayUseItsOwnProcessorsOfAllThatAreThere) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const Processors unbound = processors_here();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int processor = 0; CPU_COUNT(&one) == 0; ++processor)
    if (CPU_ISSET(processor, &before)) CPU_SET(processor, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const Processors bound = processors_here();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(bound.allowed, 1);
  EXPECT_EQ(bound.online, unbound.online);
  if (!base::processor_quota()) {
    EXPECT_EQ(unbound.allowed, CPU_COUNT(&before));
    EXPECT_GE(unbound.online, unbound.allowed);
  }
}

}  // namespace
}  // namespace snug::plan
