// Runs mpirun as a child process, passes signals on to it, and ends the ranks where it does not.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "comm/launched_ranks.h"

namespace snug::comm {

class LaunchSupervisor {
 public:
  // `command`: mpirun with its arguments, which starts so many ranks; ended where it goes on for
  // longer than `patience` after a rank ended.
  LaunchSupervisor(std::vector<std::string> command, int ranks, std::chrono::seconds patience);

  // The exit code: mpirun's, or 128 + the first signal that was passed on where the job did not end
  // well after it, or 128 + the signal that ended mpirun. Once in a process: SIGINT, SIGTERM,
  // SIGHUP and guard_signal() stay blocked. Throws UserError where mpirun cannot be started.
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
  int signal_ = 0;            // that was passed on first
  bool killed_ = false;       // the ranks, by this process
  bool guard_spoke_ = false;  // a guard said why the job ends
};

}  // namespace snug::comm
