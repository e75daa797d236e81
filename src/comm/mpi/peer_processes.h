// Watches which ranks of this machine still run. A killed rank says nothing, and its launcher may
// take seconds to end the others, so each rank watches the processes that it can see.
#pragma once

#include <mpi.h>
#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

namespace snug::comm {

struct PeerProcess {
  int rank = 0;
  pid_t process = 0;
};

class PeerProcesses {
 public:
  // A collective over all ranks of `world`.
  explicit PeerProcesses(MPI_Comm world);

  // A rank of this machine whose process has ended, if there is one. Any thread may call it at any
  // rate: the system is queried at most five times a second.
  std::optional<PeerProcess> ended();

 private:
  std::vector<PeerProcess> others_;  // ranks of this machine whose process ids this process can see
  std::mutex mutex_;
  std::chrono::steady_clock::time_point looked_;
  std::optional<PeerProcess> ended_;
};

}  // namespace snug::comm
