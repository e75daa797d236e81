// Ranks of mpirun that are given words and folders of their own, as on machines that differ.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../cli/binary_run.h"
#include "tiny_job.h"

namespace snug::train {

// A program for each rank: its words, run in its own folder.
struct App {
  fs::path folder;
  std::vector<std::string> words;
};

inline cli::BinaryRun launch(const std::vector<App>& apps) {
  std::vector<std::string> all{SNUG_MPIRUN, "--oversubscribe", "--bind-to", "none"};
  for (const App& app : apps) {
    if (&app != &apps.front()) all.push_back(":");
    for (const std::string& word :
         {std::string("-n"), std::string("1"), std::string("-wdir"), app.folder.string()})
      all.push_back(word);
    all.insert(all.end(), app.words.begin(), app.words.end());
  }
  return cli::run_program(all);
}

inline std::vector<std::string> with_binary(const std::vector<std::string>& words) {
  return cli::joined({SNUG_BINARY}, words);
}

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// One rank says what is wrong, none trains, and the launcher fails.
inline void expect_all_refuse(const TinyJob& job, const cli::BinaryRun& run,
                              const std::string& what, int exit_code = 2) {
  EXPECT_EQ(run.exit_code, exit_code) << run.err;
  EXPECT_EQ(count_of(run.err, what), 1) << "\"" << what << "\" in: " << run.err;
  EXPECT_FALSE(fs::exists(job.path("run") / "metrics.jsonl"));
}

}  // namespace snug::train
