// A process next to a rank that sees to the end of a job where MPI cannot: while MPI begins or
// ends, a rank waits in it for all others, and a launcher that loses a rank at such a moment may
// wait for ever itself (seen with Open MPI 4.1).
//
// While MPI begins or ends the guard looks after the ranks of this machine. Where one ends and the
// launcher does not end the job within kPatience, or within twice the time that it gives its ranks
// and a second where that is more, the guard says which rank it was, on the launcher's standard
// error, and kills the ranks of this machine and the launcher. Where MPI takes
// longer than the time limit, it says so and kills its own rank. In between it sleeps, until its
// rank ends. Only where Open MPI's launcher is known.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace snug::comm {

class GuardProcess {
 public:
  static constexpr auto kPatience = std::chrono::seconds(7);
  // The name in /proc/PID/comm.
  static constexpr const char* kName = "snug-guard";

  // MPI begins. Called before there are other threads, since it forks.
  explicit GuardProcess(double timeout_seconds, std::chrono::milliseconds patience = kPatience);
  // Where done() was not called, the guard watches how the launcher ends the job.
  ~GuardProcess();
  GuardProcess(const GuardProcess&) = delete;
  GuardProcess& operator=(const GuardProcess&) = delete;

  void mpi_has_begun() { tell('r'); }
  void mpi_ends() { tell('e'); }
  // MPI has ended. Waits for the guard to end.
  void done();

 private:
  void tell(char phase) const;

  pid_t process_ = 0;
  int socket_ = -1;
};

}  // namespace snug::comm
