// Ranks that are threads of one process, for tests and sanitizers. Links can be given a delay and a
// rate, so that tests can tell whether communication overlaps with other work.
#pragma once

#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace snug::comm {

struct LocalOptions {
  std::chrono::duration<double> timeout = std::chrono::seconds(600);
  std::chrono::duration<double> delay_per_message{0};
  double bytes_per_second = 0;  // the rate at which a rank sends; 0: no limit
};

class LocalHub;

class LocalGroup {
 public:
  explicit LocalGroup(int ranks, const LocalOptions& options = {});

  // Call it once for each rank. The communicator may outlive the group. When one is destroyed while
  // an exception is thrown, or while other ranks still wait for it, those ranks fail.
  std::unique_ptr<Communicator> communicator(int rank);

 private:
  std::shared_ptr<LocalHub> hub_;
};

}  // namespace snug::comm
