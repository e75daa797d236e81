// Whether a measurement had the processors to itself. For each thread the kernel counts how long it
// was ready to run while another thread ran in its place (/proc/self/task/TID/schedstat). Where the
// kernel does not count this, a round is only compared with the time of the fastest.
//
// Disturbed rounds are told apart from undisturbed ones, so that a busy machine is measured while
// the other programs pause, or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace snug::bench {

// Times since some fixed point.
struct ProcessTimes {
  double wall_seconds = 0;
  double waited_seconds = 0;  // over all threads: ready to run but without a processor
};
using ReadTimes = std::function<ProcessTimes()>;

// The times of this process.
ProcessTimes read_process_times();

// A round is disturbed if its threads waited for more than this share of its time.
inline constexpr double kDisturbedShare = 0.05;

struct Round {
  double seconds = 0;
  bool is_disturbed = false;
};

// How many rounds are measured: until there are `least_rounds` undisturbed ones that took
// `least_seconds` together. Where other programs disturb, at most kMaxRounds times as many are run,
// and no more than `least_rounds` once all took kMaxComparisonSeconds together.
struct RoundBudget {
  int least_rounds = 1;
  double least_seconds = 0;
};
inline constexpr int kMaxRounds = 4;
inline constexpr double kMaxComparisonSeconds = 1;

// Runs `round` as often as the budget says, but at least once.
std::vector<Round> time_rounds(const RoundBudget& budget, const std::function<void()>& round,
                               const ReadTimes& read_times);

// The indices of the rounds that count: undisturbed rounds that took at most a quarter longer than
// the fastest undisturbed one; if there are none, the fastest of all.
std::vector<size_t> rounds_that_count(const std::vector<Round>& rounds);

}  // namespace snug::bench
