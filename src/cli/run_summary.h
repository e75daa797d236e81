// What the folder of a run tells of it, also while the run goes on. Nothing is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/metrics_curves.h"

namespace snug::cli {

enum class RunState : uint8_t {
  running,   // a process holds the folder
  finished,  // it has its result
  stopped,   // by a signal, which saved a checkpoint first
  failed,    // it ended with an error, which its log has
  killed,    // nothing says how it ended
};
std::string_view word_of(RunState state);

struct RunSummary {
  std::string name;  // the path as it was found
  std::string model;
  std::string method;
  RunState state = RunState::killed;
  std::string last_words;  // of the log of a run that failed or was stopped
  int64_t steps = 0;
  int64_t total_steps = 0;  // 0: unknown
  std::optional<double> tokens_per_second;
  // Of the card where there is one, else of the process.
  std::optional<int64_t> planned_bytes;
  std::optional<int64_t> measured_bytes;
  std::string date;                                         // of the last step, "2026-11-29 12:20"
  std::vector<std::pair<std::string, std::string>> recipe;  // its keys with their values as text
  report::MetricsCurves curves;
};

// Whether a run of Snug made the folder.
bool is_run_folder(const std::filesystem::path& folder);

// Throws UserError where the folder does not have a run's recipe, or where its metrics are there
// and cannot be read.
RunSummary summary_of_run(const std::filesystem::path& folder);

// The runs in some folders.
struct FoundRuns {
  std::vector<RunSummary> runs;                             // in the order of their names
  std::vector<std::pair<std::string, std::string>> broken;  // folders of runs, with the reason
  std::vector<std::string> others;                          // folders without any run
  bool are_all_named = true;                                // each folder is itself a run's
};
// Looks a few levels deep, and into no run. Throws UserError for a folder that is not there.
FoundRuns find_runs(const std::vector<std::string>& folders);

}  // namespace snug::cli
