// A call on a file that fails, or does half of what it was asked for, ends a run with an error that
// names the file, or in nothing: the results are those of a run that nothing disturbed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "findings.h"
#include "scene.h"

namespace snug::hostile {
namespace {

constexpr const char* kKind = "failing_calls";

class FailingCalls : public ::testing::TestWithParam<size_t> {};

std::string trial_of(const std::string& scene, const Disturbance& disturbance) {
  return fmt::format(
      "{}/{}/{}", scene, disturbance.call,
      disturbance.way == Way::shorten ? "short" : ::strerrorname_np(disturbance.error_number));
}

// What a user may not see.
std::string problem_of(Stage& stage, const Ended& end, const Disturbance& disturbance,
                       const FileCall& call) {
  if (end.timed_out) return "hangs";
  if (end.exit_code == 0) return stage.difference();
  // Calls that were interrupted or did a part are made again; only an opening one, which local file
  // systems never interrupt and libraries do not repeat, may be an error.
  const bool must_go_on =
      disturbance.way == Way::shorten || (disturbance.error_number == EINTR && !call.opens);
  if (must_go_on) return fmt::format("exit code {}: {}", end.exit_code, end.last_line());
  if (end.exit_code != 2) return fmt::format("exit code {}: {}", end.exit_code, end.last_line());
  if (const std::string message = stage.difference_of_message(end); !message.empty())
    return message;
  return stage.go_on();
}

void disturb(Stage& stage, const std::string& scene, const Disturbance& disturbance) {
  const std::string trial = trial_of(scene, disturbance);
  const TracedRun run = stage.run(disturbance);
  std::string problem = "ended before the call";
  if (disturbance.call < std::ssize(run.calls)) {
    const FileCall& at = run.calls[static_cast<size_t>(disturbance.call)];
    problem = problem_of(stage, run.end, disturbance, at);
    if (!problem.empty())
      problem = fmt::format("{} of {}: {}", at.name, stage.name_of(at.path), problem);
  }
  record(kKind, trial, run.end.exit_code, problem);
}

std::vector<Disturbance> disturbances(const std::vector<FileCall>& calls,
                                      const std::string& scene) {
  std::vector<Disturbance> all;
  for (int64_t i = 0; i < std::ssize(calls); ++i) {
    const FileCall& call = calls[static_cast<size_t>(i)];
    for (const int error : errors_of(call))
      all.push_back({.way = Way::fail, .call = i, .error_number = error});
    if (call.moves_bytes) all.push_back({.way = Way::shorten, .call = i});
  }
  std::shuffle(all.begin(), all.end(), std::mt19937_64(options().seed));
  // Always among them is a line of metrics.jsonl that the disk has no room for, since no other file
  // has what it says.
  const auto has_no_room = [&](const Disturbance& each) {
    const FileCall& call = calls[static_cast<size_t>(each.call)];
    return each.error_number == ENOSPC && call.moves_bytes && call.changes &&
           call.path.filename() == "metrics.jsonl";
  };
  if (const auto found = std::ranges::find_if(all, has_no_room); found != all.end())
    std::rotate(all.begin(), found, found + 1);
  const auto most = static_cast<size_t>(trials(6, std::ssize(all)));
  if (all.size() > most) all.resize(most);
  std::erase_if(all, [&](const Disturbance& each) { return !is_wanted(trial_of(scene, each)); });
  return all;
}

TEST_P(FailingCalls, EndInAnErrorOrInNothing) {
  if (!can_trace()) {
    record_skipped(kKind, "processes cannot be traced here");
    GTEST_SKIP() << "processes cannot be traced here";
  }
  const Scene& scene = scenes()[GetParam()];
  if (!is_any_wanted(scene.name)) return;
  Stage stage(scene);
  for (const Disturbance& each : disturbances(stage.calls(), scene.name))
    disturb(stage, scene.name, each);
}

INSTANTIATE_TEST_SUITE_P(Scenes, FailingCalls, ::testing::Range(size_t{0}, scenes().size()),
                         [](const auto& test) { return scenes()[test.param].name; });

}  // namespace
}  // namespace snug::hostile
