// Runs mpirun as a child process, forwards signals to it, and ends the ranks where mpirun does not.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "comm/launched_ranks.h"

namespace snug::comm {

class LaunchSupervisor {
 public:
  // `command` is mpirun with its arguments, which starts `ranks` ranks. The job is killed if it
  // goes on for longer than `patience` after a rank ended.
  LaunchSupervisor(std::vector<std::string> command, int ranks, std::chrono::seconds patience);

  // Returns the exit code: that of mpirun, or 128 + the first signal that was forwarded where the
  // job then did not end well, or 128 + the signal that ended mpirun. Call it once in a process:
  // SIGINT, SIGTERM, SIGHUP and guard_signal() stay blocked. Throws UserError where mpirun cannot
  // be started.
  int run();

 private:
  void start();
  void pass_on_signals();
  void hear_guards();
  void look_after(LaunchedRanks& ranks);
  std::string who_is_gone(const LaunchedRanks& ranks) const;
  int exit_code(int status) const;

  std::vector<std::string> command_;
  const int ranks_;
  const std::chrono::seconds patience_;
  pid_t launcher_ = 0;
  int signal_ = 0;            // the first signal that was forwarded
  bool killed_ = false;       // this process killed the ranks
  bool guard_spoke_ = false;  // a guard already said why the job ends
};

}  // namespace snug::comm
