// A process that nothing launched starts the ranks of a job on this machine: it becomes mpirun,
// which runs the same command once for each.
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

// Replaces this process. `arguments` are those of this program without its name.
[[noreturn]] void launch_ranks(int ranks, const std::vector<std::string>& arguments);

}  // namespace snug::comm
