#include "comm/processor_share.h"

#include <gtest/gtest.h>

#include <numeric>

namespace snug::comm {
namespace {

ProcessorUse use(const std::string& machine, int first, int count) {
  ProcessorUse use;
  use.machine = machine;
  use.processors.resize(static_cast<size_t>(count));
  std::iota(use.processors.begin(), use.processors.end(), first);
  return use;
}

ProcessorUse limited(ProcessorUse use, const std::string& group, double quota) {
  use.quota_group = group;
  use.quota = quota;
  return use;
}

TEST(ProcessorShare, RanksThatAreNotBoundShareTheMachine) {
  EXPECT_EQ(threads_of_ranks({use("a", 0, 8)}), 8);
  EXPECT_EQ(threads_of_ranks({use("a", 0, 8), use("a", 0, 8)}), 4);
  EXPECT_EQ(threads_of_ranks({use("a", 0, 8), use("a", 0, 8), use("a", 0, 8)}), 2);
  EXPECT_EQ(threads_of_ranks({use("a", 0, 3), use("a", 0, 3), use("a", 0, 3)}), 1);
  EXPECT_EQ(threads_of_ranks(std::vector<ProcessorUse>(5, use("a", 0, 2))), 1);
  // Another machine has processors of the same numbers.
  EXPECT_EQ(threads_of_ranks({use("a", 0, 8), use("b", 0, 8)}), 8);
}

TEST(ProcessorShare, RanksThatAreBoundHaveTheirOwn) {
  EXPECT_EQ(threads_of_ranks({use("a", 0, 4), use("a", 4, 4)}), 4);
  EXPECT_EQ(threads_of_ranks({use("a", 0, 1), use("a", 1, 1)}), 1);
  // The first has two of its own and shares two.
  EXPECT_EQ(threads_of_ranks({use("a", 0, 4), use("a", 2, 4)}), 3);
}

TEST(ProcessorShare, OfTheRankWithLeastCounts) {
  EXPECT_EQ(threads_of_ranks({use("a", 0, 8), use("b", 0, 2)}), 2);
}

TEST(ProcessorShare, IsNoMoreThanAQuota) {
  EXPECT_EQ(threads_of_ranks({limited(use("a", 0, 8), "/job", 3.5)}), 3);
  EXPECT_EQ(threads_of_ranks(std::vector<ProcessorUse>(2, limited(use("a", 0, 8), "/job", 4))), 2);
  EXPECT_EQ(
      threads_of_ranks({limited(use("a", 0, 8), "/one", 4), limited(use("a", 0, 8), "/two", 4)}),
      4);
  EXPECT_EQ(threads_of_ranks({limited(use("a", 0, 8), "/job", 0.5)}), 1);
}

TEST(ProcessorShare, TravelsAsText) {
  for (const ProcessorUse& each :
       {limited(use("a b", 3, 5), "/x y", 2.25), use("", 0, 1), own_processor_use()}) {
    const ProcessorUse read = processor_use_of(to_text(each));
    EXPECT_EQ(read.machine, each.machine);
    EXPECT_EQ(read.processors, each.processors);
    EXPECT_EQ(read.quota_group, each.quota_group);
    EXPECT_EQ(read.quota, each.quota);
  }
}

}  // namespace
}  // namespace snug::comm
