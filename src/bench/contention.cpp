#include "bench/contention.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace snug::bench {
namespace {

namespace fs = std::filesystem;

// A round that is slower than the fastest by more than this factor was disturbed by something that
// the kernel does not count: another virtual machine, or other programs' use of memory.
constexpr double kSlower = 1.25;

// The nanoseconds for which a thread waited although it was ready to run. In the file this number
// follows the thread's time on a processor.
double waited_nanoseconds(const fs::path& schedstat) {
  std::ifstream stream(schedstat);
  double ran = 0;
  double waited = 0;
  stream >> ran >> waited;
  return stream ? waited : 0;
}

}  // namespace

ProcessTimes read_process_times() {
  ProcessTimes times;
  std::error_code error;
  for (const auto& thread : fs::directory_iterator("/proc/self/task", error))
    times.waited_seconds += waited_nanoseconds(thread.path() / "schedstat") * 1e-9;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  times.wall_seconds = std::chrono::duration<double>(now).count();
  return times;
}

std::vector<Round> time_rounds(const RoundBudget& budget, const std::function<void()>& round,
                               const ReadTimes& read_times) {
  std::vector<Round> rounds;
  int undisturbed = 0;
  double undisturbed_seconds = 0;
  double seconds = 0;
  const auto is_done = [&] {
    if (rounds.empty()) return false;
    if (undisturbed >= budget.least_rounds && undisturbed_seconds >= budget.least_seconds)
      return true;
    if (std::ssize(rounds) < budget.least_rounds || seconds < kMaxRounds * budget.least_seconds)
      return false;
    return std::ssize(rounds) >= int64_t{kMaxRounds} * budget.least_rounds ||
           seconds >= kMaxComparisonSeconds;
  };
  while (!is_done()) {
    const ProcessTimes before = read_times();
    round();
    const ProcessTimes after = read_times();
    Round timed{.seconds = after.wall_seconds - before.wall_seconds};
    timed.is_disturbed =
        after.waited_seconds - before.waited_seconds > kDisturbedShare * timed.seconds;
    rounds.push_back(timed);
    seconds += timed.seconds;
    if (timed.is_disturbed) continue;
    ++undisturbed;
    undisturbed_seconds += timed.seconds;
  }
  return rounds;
}

std::vector<size_t> rounds_that_count(const std::vector<Round>& rounds) {
  const bool any_undisturbed =
      std::ranges::any_of(rounds, [](const Round& round) { return !round.is_disturbed; });
  const auto fastest = std::ranges::min_element(rounds, {}, [&](const Round& round) {
    return std::pair{any_undisturbed && round.is_disturbed, round.seconds};
  });
  if (!any_undisturbed) return {static_cast<size_t>(fastest - rounds.begin())};
  std::vector<size_t> counting;
  for (size_t i = 0; i < rounds.size(); ++i)
    if (!rounds[i].is_disturbed && rounds[i].seconds <= kSlower * fastest->seconds)
      counting.push_back(i);
  return counting;
}

}  // namespace snug::bench
