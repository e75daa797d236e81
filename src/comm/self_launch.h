// A process that nothing launched starts the ranks of a job on this machine: it starts mpirun,
// which runs the same command once for each, and sees to the end of all of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "comm/launch.h"

namespace snug::comm {

struct LaunchCommand {
  std::vector<std::string> arguments;  // the first is the program
  Variables added;                     // to the environment
};

// `program` and `arguments` are what each rank runs. Throws UserError where these variables (PATH
// among them) lead to no mpirun, or say that this process is a rank already.
LaunchCommand launch_command(int ranks, const std::string& program,
                             const std::vector<std::string>& arguments, const Variables& variables,
                             bool root);

// Whether a process that launch_ranks() supervises started this one as a rank.
bool is_self_launched(const Variables& variables);

// Runs the ranks and ends this process as they ended: with mpirun's exit code, or 128 + the number
// of a signal (SIGINT, SIGTERM, SIGHUP) that asked this process, and so them, to end. Where a rank
// has ended and mpirun does not end the others, all are killed, with an error that names it.
// `arguments` are those of this program without its name.
[[noreturn]] void launch_ranks(int ranks, const std::vector<std::string>& arguments);

}  // namespace snug::comm
