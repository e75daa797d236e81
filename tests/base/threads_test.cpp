#include "base/threads.h"

#include <gtest/gtest.h>

#include <thread>

namespace snug::base {
namespace {

TEST(ThreadCount, IsWhatIsWantedOrOneACore) {
  EXPECT_EQ(thread_count(3), 3);
  EXPECT_EQ(thread_count(0), std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace snug::base
