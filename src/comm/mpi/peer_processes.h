// Which ranks of this machine still run. A rank that is killed says nothing, and its launcher may
// take seconds to end the others, so each looks after those whose processes it can see.
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
  // All ranks of `world` call it together.
  explicit PeerProcesses(MPI_Comm world);

  // A rank of this machine whose process has ended, if there is one. Any thread may ask, at any
  // rate: the system is asked five times a second at most.
  std::optional<PeerProcess> ended();

 private:
  std::vector<PeerProcess> others_;  // on this machine, whose process numbers mean the same here
  std::mutex mutex_;
  std::chrono::steady_clock::time_point looked_;
  std::optional<PeerProcess> ended_;
};

}  // namespace snug::comm
