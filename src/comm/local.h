// Ranks that are threads of one process, for tests and sanitizers. Links may be given a delay and a
// rate, so that tests can tell whether communication goes on next to other work.
#pragma once

#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace snug::comm {

struct LocalOptions {
  std::chrono::duration<double> timeout = std::chrono::seconds(600);
  std::chrono::duration<double> delay_per_message{0};
  double bytes_per_second = 0;  // of what a rank sends; 0: no limit
};

class LocalHub;

class LocalGroup {
 public:
  explicit LocalGroup(int ranks, const LocalOptions& options = {});

  // Once for each rank. It may outlive the group. The other ranks fail when one is destroyed by an
  // exception, or while they still wait for it.
  std::unique_ptr<Communicator> communicator(int rank);

 private:
  std::shared_ptr<LocalHub> hub_;
};

}  // namespace snug::comm
