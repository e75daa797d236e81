// What the hostile runs of this process were, how they ended, and what was wrong with which.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace snug::hostile {

// From the command line: --long[=PART], --seed=N, --only=TRIAL, --results=FILE.
struct Options {
  double part = 0;  // of the long form's trials; 0: the short form
  uint64_t seed = 1;
  std::string only;               // one trial, by the name that a failure says
  std::filesystem::path results;  // empty: none are written
};

Options& options();

// A kind's number of trials in the form that is asked for; all where one of them is repeated.
int64_t trials(int64_t in_short, int64_t in_long);
bool is_wanted(const std::string& trial);
// Of trials whose names begin with this and a slash.
bool is_any_wanted(const std::string& beginning);

struct Finding {
  std::string trial;
  std::string problem;
};

// Of one kind: kills, failing calls, ...
struct Tally {
  int64_t runs = 0;
  std::map<int, int64_t> exit_codes;
  std::vector<Finding> failures;
  std::string skipped;  // why there were none
};

Tally& tally(const std::string& kind);

// Counts the run, and fails the test that goes on where `problem` is not empty.
void record(const std::string& kind, const std::string& trial, int exit_code,
            const std::string& problem);
void record_skipped(const std::string& kind, const std::string& reason);

// Adds the tallies to the file's others, with machine, date and commit.
void write_results(const std::filesystem::path& path);

}  // namespace snug::hostile
