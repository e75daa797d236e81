// Ranks of the binary under mpirun, and what the system says that each of them held at most. The
// test's own program stands between the launcher and each rank, since only its parent learns it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "../cli/binary_run.h"

namespace snug::testing {

inline constexpr const char* kMeasure = "--measure=";

// `words` become `PROGRAM --measure=FOLDER words...` on each rank: runs them and writes the peak to
// FOLDER/peak-RANK. Returns the exit code.
inline int measure_rank(const std::filesystem::path& folder, char** words) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::execv(words[0], words);
    ::_exit(127);
  }
  int status = 0;
  struct rusage used = {};
  ::wait4(process, &status, 0, &used);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  std::ofstream(folder / fmt::format("peak-{}", rank == nullptr ? "0" : rank))
      << int64_t{used.ru_maxrss} * 1024;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// For main: the exit code of a rank that is to be measured, or -1 where the program is the test.
inline int measure_if_asked(int argc, char** argv) {
  const std::string first = argc > 2 ? argv[1] : "";
  if (!first.starts_with(kMeasure)) return -1;
  return measure_rank(first.substr(std::string_view(kMeasure).size()), argv + 2);
}

// Runs these words on so many ranks; the peak of each in bytes, by rank. Fails the test where the
// ranks end with an error.
inline std::vector<int64_t> peaks_of_ranks(int ranks, const std::vector<std::string>& words) {
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  const TemporaryFolder folder;
  std::vector<std::string> all{SNUG_MPIRUN,
                               "-n",
                               std::to_string(ranks),
                               "--oversubscribe",
                               "--bind-to",
                               "none",
                               std::filesystem::read_symlink("/proc/self/exe").string(),
                               kMeasure + folder.path().string()};
  all.insert(all.end(), words.begin(), words.end());
  const cli::BinaryRun run = cli::run_program(all);
  EXPECT_EQ(run.exit_code, 0) << run.output();
  std::vector<int64_t> peaks;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string text = cli::contents_of(folder / fmt::format("peak-{}", rank));
    EXPECT_FALSE(text.empty()) << "rank " << rank << " was not measured";
    peaks.push_back(text.empty() ? 0 : std::stoll(text));
  }
  return peaks;
}

}  // namespace snug::testing
