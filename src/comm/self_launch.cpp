#include "comm/self_launch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "comm/launch_supervisor.h"
#include "comm/launched_ranks.h"
#include "comm/launcher_words.h"
#include "comm/mpi_transport.h"

namespace snug::comm {
namespace {

namespace fs = std::filesystem;

// Seconds that a rank has between mpirun's request to end and being killed.
constexpr int kKillSeconds = 3;

// The name in Debian's alternatives comes first, since the options are those of Open MPI.
constexpr const char* kLaunchers[] = {"mpirun.openmpi", "mpirun"};

std::string find_launcher(const Variables& variables) {
  const auto path = variables.find("PATH");
  for (const char* launcher : kLaunchers) {
    std::istringstream folders(path == variables.end() ? "" : path->second);
    for (std::string folder; std::getline(folders, folder, ':');) {
      const fs::path candidate = fs::path(folder) / launcher;
      if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
    }
  }
  base::throw_user_error(
      "Several devices need mpirun, which is not in PATH. Install it: apt-get install openmpi-bin");
}

void check_not_launched(const Variables& variables) {
  if (!variables.contains(kSupervisor) && read_launch(variables).launcher == Launcher::none) return;
  base::throw_user_error(
      "This process is started as one rank of a job already, and starts no further ones. If it is "
      "not, unset {} and the variables of the launcher.",
      kSupervisor);
}

// The time that mpirun may take to end the job after a rank ended, plus a second.
std::chrono::seconds patience() {
  const char* text = std::getenv(kLauncherKillTime);
  const int seconds = text == nullptr ? kKillSeconds : std::atoi(text);
  return std::chrono::seconds(2 * std::max(seconds, 0) + 1);
}

}  // namespace

LaunchCommand launch_command(int ranks, const std::string& program,
                             const std::vector<std::string>& arguments, const Variables& variables,
                             bool root) {
  SNUG_CHECK(ranks >= 1, "{} ranks", ranks);
  check_not_launched(variables);
  LaunchCommand command;
  // -q: a rank that ends with an error says why, so mpirun's own messages are not needed.
  // --oversubscribe: mpirun counts cores and would refuse one rank per hardware thread. --bind-to
  // none: it would otherwise bind two ranks to one core each.
  command.arguments = {find_launcher(variables), "-q",        "-n",   std::to_string(ranks),
                       "--oversubscribe",        "--bind-to", "none", program};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  command.added.emplace(kSupervisor, std::to_string(::getpid()));
  // Ranks that are asked to end first write a checkpoint; by default mpirun kills them after 1 s.
  // It waits twice this time where a rank died and the others must end.
  if (!variables.contains(kLauncherKillTime))
    command.added.emplace(kLauncherKillTime, std::to_string(kKillSeconds));
  if (root) {
    command.added.emplace("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.added.emplace("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return command;
}

bool is_self_launched(const Variables& variables) { return variables.contains(kSupervisor); }

void launch_ranks(int ranks, const std::vector<std::string>& arguments) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const LaunchCommand command =
      launch_command(ranks, program, arguments, environment(), geteuid() == 0);
  find_mpi_library();  // fails now instead of in each rank
  for (const auto& [name, value] : command.added) setenv(name.c_str(), value.c_str(), 1);
  std::exit(LaunchSupervisor(command.arguments, ranks, patience()).run());
}

}  // namespace snug::comm
