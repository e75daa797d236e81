#include "comm/local.h"

#include <gtest/gtest.h>

#include "collective_checks.h"
#include "ranks.h"

namespace snug::comm {
namespace {

class Local : public ::testing::TestWithParam<int> {
 protected:
  void run(const std::function<void(Communicator&)>& rank) const {
    for (const std::string& error : errors_of_ranks(GetParam(), {}, rank)) EXPECT_EQ(error, "");
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, Local, ::testing::Values(1, 2, 3, 4, 8));

TEST_P(Local, GathersFromElsewhereAndInPlace) {
  run([](Communicator& communicator) {
    check_all_gather(communicator, false);
    check_all_gather(communicator, true);
  });
}
TEST_P(Local, ReduceScatterGivesSumsByRank) { run(check_reduce_scatter); }
TEST_P(Local, ReduceScatterInPlace) { run(check_reduce_scatter_in_place); }
TEST_P(Local, AllReduceGivesSumsByRank) { run(check_all_reduce); }
TEST_P(Local, ManyPartsInOneCall) { run(check_many_parts); }
TEST_P(Local, PartsLongerThanTheScratch) { run(check_long_parts); }
TEST_P(Local, CollectivesWaitInAQueue) { run(check_queue); }
TEST_P(Local, TextsOfAllRanks) { run(check_texts); }
TEST_P(Local, GroupsOfRanks) {
  if (GetParam() > 1) run(check_split);
}

TEST(LocalGroup, KnowsItsGroup) {
  const auto communicator = LocalGroup(3).communicator(2);
  EXPECT_EQ(communicator->rank(), 2);
  EXPECT_EQ(communicator->size(), 3);
  EXPECT_EQ(communicator->name(), "local");
  EXPECT_EQ(communicator->bytes_sent(), 0);
}

}  // namespace
}  // namespace snug::comm
