#include "base/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace snug::base {
namespace {

TEST(ThreadCount, IsWhatIsWantedOrWhatMayBeUsed) {
  EXPECT_EQ(thread_count(3), 3);
  EXPECT_GE(thread_count(0), 1);
  EXPECT_LE(thread_count(0), static_cast<int>(allowed_processors().size()));
  EXPECT_LE(allowed_processors().size(), std::max(1U, std::thread::hardware_concurrency()));
}

// What taskset and launchers do.
TEST(ThreadCount, FollowsTheAffinityOfTheProcess) {
  int processor = -1;
  std::vector<int> allowed;
  int count = 0;
  std::thread bound([&] {
    processor = allowed_processors().back();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    allowed = allowed_processors();
    count = thread_count(0);
  });
  bound.join();
  EXPECT_EQ(allowed, std::vector<int>{processor});
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace snug::base
