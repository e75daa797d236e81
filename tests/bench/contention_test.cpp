// What a measurement makes of others that run next to it, by times that a test hands out.
#include "bench/contention.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace snug::bench {
namespace {

// A round as a machine would have it.
struct Given {
  double seconds = 0;
  double waited = 0;  // of the threads
};

// Runs as many of the given rounds as the budget asks for; the last again and again.
std::vector<Round> rounds_of(const RoundBudget& budget, const std::vector<Given>& given) {
  ProcessTimes now;
  size_t next = 0;
  return time_rounds(
      budget,
      [&] {
        const Given& round = given[std::min(next++, given.size() - 1)];
        now.wall_seconds += round.seconds;
        now.waited_seconds += round.waited;
      },
      [&] { return now; });
}

TEST(Contention, UndisturbedRoundsAreAsManyAsAskedFor) {
  const auto rounds = rounds_of({.least_rounds = 3, .least_seconds = 0.1}, {{0.02, 0.0005}});
  EXPECT_EQ(rounds.size(), 5U) << "0.1 s of them";
  EXPECT_EQ(rounds_that_count(rounds).size(), rounds.size());
  for (const Round& round : rounds) EXPECT_FALSE(round.is_disturbed);
}

TEST(Contention, DisturbedRoundsAreRepeatedAndDoNotCount) {
  const auto rounds = rounds_of({.least_rounds = 2, .least_seconds = 0},
                                {{0.09, 0.05}, {0.01, 0}, {0.05, 0.03}, {0.011, 0}});
  ASSERT_EQ(rounds.size(), 4U);
  EXPECT_EQ(rounds_that_count(rounds), (std::vector<size_t>{1, 3}));
}

TEST(Contention, OnAMachineThatIsAlwaysBusyTheFastestCountsAndIsMarked) {
  const auto rounds = rounds_of({.least_rounds = 1, .least_seconds = 0.01},
                                {{0.09, 0.05}, {0.05, 0.03}, {0.07, 0.02}});
  EXPECT_EQ(rounds.size(), static_cast<size_t>(kMaxRounds)) << "it ends all the same";
  EXPECT_EQ(rounds_that_count(rounds), std::vector<size_t>{1});
  for (const Round& round : rounds) EXPECT_TRUE(round.is_disturbed);
}

// A step that takes long is not repeated for the sake of what others do.
TEST(Contention, LongRoundsAreNotRepeated) {
  EXPECT_EQ(rounds_of({.least_rounds = 1, .least_seconds = 0.05}, {{1.5, 0.5}}).size(), 1U);
  EXPECT_EQ(rounds_of({.least_rounds = 3, .least_seconds = 0.3}, {{0.6, 0.5}}).size(), 3U);
}

// As by another virtual machine, of which this one's kernel knows nothing.
TEST(Contention, RoundsMuchSlowerThanTheFastestDoNotCount) {
  const auto rounds =
      rounds_of({.least_rounds = 3, .least_seconds = 0}, {{0.010, 0}, {0.020, 0}, {0.012, 0}});
  EXPECT_EQ(rounds_that_count(rounds), (std::vector<size_t>{0, 2}));
}

// Twice as many threads as there are processors wait for one another.
TEST(Contention, OfThisProcessIsSeen) {
  std::atomic<bool> stops = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
    threads.emplace_back([&] {
      while (!stops) {
      }
    });
  const ProcessTimes before = read_process_times();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const ProcessTimes after = read_process_times();
  stops = true;
  for (std::thread& thread : threads) thread.join();
  const double seconds = after.wall_seconds - before.wall_seconds;
  EXPECT_GE(seconds, 0.3);
  EXPECT_GT(after.waited_seconds - before.waited_seconds, kDisturbedShare * seconds);
}

}  // namespace
}  // namespace snug::bench
