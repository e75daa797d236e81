// Runs mpirun as a child process, passes signals on to it, and ends the ranks where it does not.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <string>
#include <vector>

#include "comm/launched_ranks.h"

namespace snug::comm {

class LaunchSupervisor {
 public:
  // `command`: mpirun with its arguments; ended where it goes on for longer than `patience` after
  // a rank ended.
  LaunchSupervisor(std::vector<std::string> command, std::chrono::seconds patience);

  // The exit code: mpirun's, or 128 + the first signal that was passed on where the job did not end
  // well after it, or 128 + the signal that ended mpirun. Once in a process: SIGINT, SIGTERM,
  // SIGHUP and SIGCHLD stay blocked. Throws UserError where mpirun cannot be started.
  int run();

 private:
  void start();
  // Passes it on where it asks to end.
  void wait_for_signal(const timespec& time);
  void look_after(LaunchedRanks& ranks);
  int exit_code(int status) const;

  std::vector<std::string> command_;
  const std::chrono::seconds patience_;
  pid_t launcher_ = 0;
  int signal_ = 0;       // that was passed on first
  bool killed_ = false;  // the ranks, by this process
};

}  // namespace snug::comm
