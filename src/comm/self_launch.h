// A process that no launcher started can start the ranks of a job on this machine: it starts
// mpirun, which runs the same command once per rank, and makes sure that all of them end.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/launch.h"

namespace snug::comm {

struct LaunchCommand {
  std::vector<std::string> arguments;  // the first is the program
  Variables added;                     // environment variables to add
};

// `program` and `arguments` are what each rank runs. Throws UserError where these variables (PATH
// among them) lead to no mpirun, or say that this process is already a rank.
LaunchCommand launch_command(int ranks, const std::string& program,
                             const std::vector<std::string>& arguments, const Variables& variables,
                             bool root);

// Whether this process is a rank that launch_ranks() started.
bool is_self_launched(const Variables& variables);

// Runs the ranks and then exits as they did: with mpirun's exit code, or with 128 + the number of
// the signal (SIGINT, SIGTERM, SIGHUP) that asked this process, and so the ranks, to end. Where a
// rank has ended and mpirun does not end the others, kills all of them, with an error that names
// the rank. `arguments` are those of this program without its name.
[[noreturn]] void launch_ranks(int ranks, const std::vector<std::string>& arguments);

}  // namespace snug::comm
