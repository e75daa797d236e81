// Tiny runs of the binary on ranks that are processes of MPI.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tiny_job.h"

namespace snug::train {

// Lets mpirun run as root, and kill ranks that others left behind after a second and not after the
// four that a user's checkpoint may take (it waits twice).
inline void prepare_mpi() {
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "1", 1);
}

inline constexpr const char* kMpiCommon =
    "compute_dtype=fp32 learning_rate=5e-4 lr_scheduler_type=constant "
    "warmup_ratio=0 max_steps=3 timeout_seconds=60 ";

// The processes of a run, by rank: by what stands in their command lines and environments. Not the
// guards next to them.
inline std::map<int, pid_t> ranks_of(const fs::path& output) {
  const std::string variable = "OMPI_COMM_WORLD_RANK=";
  std::map<int, pid_t> ranks;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // A copy of its rank's process until MPI ends.
    if (cli::contents_of(entry.path() / "comm") == "snug-guard\n") continue;
    const std::string words = cli::contents_of(entry.path() / "cmdline");
    if (words.find("output_dir=" + output.string()) == std::string::npos) continue;
    const std::string environment = cli::contents_of(entry.path() / "environ");
    const size_t found = environment.find(variable);
    if (found != std::string::npos)
      ranks[std::stoi(environment.substr(found + variable.size()))] =
          static_cast<pid_t>(std::stol(name));
  }
  return ranks;
}

// What lines of metrics.jsonl have of this name.
inline std::vector<double> values_of(const TinyJob& job, const std::string& output,
                                     const std::string& name) {
  std::istringstream lines(cli::contents_of(job.path(output) / "metrics.jsonl"));
  std::vector<double> values;
  for (std::string line; std::getline(lines, line);)
    if (const auto json = nlohmann::json::parse(line); json.contains(name))
      values.push_back(json.at(name).get<double>());
  return values;
}

// The step of the latest checkpoint; 0 where there is none.
inline int64_t newest_checkpoint(const fs::path& output) {
  int64_t newest = 0;
  if (!fs::is_directory(output)) return newest;
  for (const auto& entry : fs::directory_iterator(output)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kPrefix = "checkpoint-";
    // Others are on their way to become one.
    const bool is_whole = name.starts_with(kPrefix) &&
                          name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
    if (is_whole)
      newest = std::max(newest, static_cast<int64_t>(std::stoll(name.substr(kPrefix.size()))));
  }
  return newest;
}

}  // namespace snug::train
