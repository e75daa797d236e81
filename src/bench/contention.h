// Whether what was timed had the processors to itself. The kernel counts, for each thread, how long
// it was ready to run and another thread ran in its place (/proc/self/task/TID/schedstat); where it
// does not, only the time of a round tells, next to that of the fastest.
//
// Rounds of a measurement that others disturbed are told apart from those that they left alone, so
// that a busy machine is measured in the pauses of the others, or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace snug::bench {

// Since some point in time.
struct ProcessTimes {
  double wall_seconds = 0;
  double waited_seconds = 0;  // of all threads, ready to run without a processor
};
using ReadTimes = std::function<ProcessTimes()>;

// The times of this process.
ProcessTimes read_process_times();

// A round whose threads waited for more than this share of its time was disturbed.
inline constexpr double kDisturbedShare = 0.05;

struct Round {
  double seconds = 0;
  bool is_disturbed = false;
};

// How many rounds are measured: undisturbed ones until there are `least_rounds` that took
// `least_seconds` together; but where others disturb, no more than kMaxRounds times that, and none
// beyond `least_rounds` when all took kMaxComparisonSeconds.
struct RoundBudget {
  int least_rounds = 1;
  double least_seconds = 0;
};
inline constexpr int kMaxRounds = 4;
inline constexpr double kMaxComparisonSeconds = 1;

// Runs `round` as often as the budget says; at least once.
std::vector<Round> time_rounds(const RoundBudget& budget, const std::function<void()>& round,
                               const ReadTimes& read_times);

// Indices of the rounds that count: undisturbed ones that took at most a quarter longer than the
// fastest of them, else the fastest of all.
std::vector<size_t> rounds_that_count(const std::vector<Round>& rounds);

}  // namespace snug::bench
