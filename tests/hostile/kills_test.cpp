// A run that is killed at any of its calls on files goes on with one command, and ends with the
// bits of a run that nothing disturbed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "findings.h"
#include "scene.h"

namespace snug::hostile {
namespace {

constexpr const char* kKind = "kills";

class Kills : public ::testing::TestWithParam<size_t> {};

void kill_at(Stage& stage, const std::string& scene, int64_t call, Way way) {
  const std::string trial =
      fmt::format("{}/{}/{}", scene, call, way == Way::torn ? "torn" : "kill");
  if (!is_wanted(trial)) return;
  const TracedRun run = stage.run({.way = way, .call = call});
  std::string problem;
  if (run.end.exit_code == 128 + SIGKILL && !run.end.timed_out)
    problem = stage.go_on();
  else
    problem = fmt::format("was not killed, exit code {}", run.end.exit_code);
  if (!problem.empty() && call < std::ssize(run.calls)) {
    const FileCall& at = run.calls[static_cast<size_t>(call)];
    problem = fmt::format("killed at {} of {}: {}", at.name, stage.name_of(at.path), problem);
  }
  record(kKind, trial, run.end.exit_code, problem);
}

// Calls that change a file or a folder, and the last one: between two of them a kill leaves the
// same.
std::vector<int64_t> chosen_calls(const std::vector<FileCall>& calls) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < std::ssize(calls); ++i)
    if (calls[static_cast<size_t>(i)].changes || i + 1 == std::ssize(calls)) all.push_back(i);
  std::shuffle(all.begin(), all.end(), std::mt19937_64(options().seed));
  const auto most = static_cast<size_t>(trials(3, std::ssize(all)));
  if (all.size() > most) all.resize(most);
  std::sort(all.begin(), all.end());
  return all;
}

TEST_P(Kills, EndWithTheSameBits) {
  if (!can_trace()) {
    record_skipped(kKind, "processes cannot be traced here");
    GTEST_SKIP() << "processes cannot be traced here";
  }
  const Scene& scene = scenes()[GetParam()];
  if (!is_any_wanted(scene.name)) return;
  Stage stage(scene);
  for (const int64_t call : chosen_calls(stage.calls())) {
    kill_at(stage, scene.name, call, Way::kill);
    const FileCall& at = stage.calls()[static_cast<size_t>(call)];
    if (at.moves_bytes && at.changes) kill_at(stage, scene.name, call, Way::torn);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, Kills, ::testing::Range(size_t{0}, scenes().size()),
                         [](const auto& test) { return scenes()[test.param].name; });

}  // namespace
}  // namespace snug::hostile
