// A process next to each rank that ends the job where MPI cannot. While MPI initialises or
// finalises, a rank waits inside it for all others, and a launcher that loses a rank at such a
// moment may itself wait for ever (seen with Open MPI 4.1).
//
// During these phases the guard watches the ranks of this machine. When one ends, it gives the
// launcher time to end the job: kPatience, or twice the time that the launcher gives its ranks plus
// a second, whichever is longer. After that the guard says on the launcher's standard error which
// rank ended, and kills the ranks of this machine and the launcher. Where MPI takes longer than the
// time limit, the guard says so and kills its own rank. Between the phases it sleeps until its rank
// ends. There is a guard only where the launcher is Open MPI's.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace snug::comm {

class GuardProcess {
 public:
  static constexpr auto kPatience = std::chrono::seconds(7);
  // The name in /proc/PID/comm.
  static constexpr const char* kName = "snug-guard";

  // Call it before MPI initialises and before there are other threads, since it forks.
  explicit GuardProcess(double timeout_seconds, std::chrono::milliseconds patience = kPatience);
  // Where done() was not called, the guard keeps watching how the launcher ends the job.
  ~GuardProcess();
  GuardProcess(const GuardProcess&) = delete;
  GuardProcess& operator=(const GuardProcess&) = delete;

  void mpi_has_begun() { tell('r'); }
  void mpi_ends() { tell('e'); }
  // Call it when MPI has finalised. Waits for the guard to exit.
  void done();

 private:
  void tell(char phase) const;

  pid_t process_ = 0;
  int socket_ = -1;
};

}  // namespace snug::comm
