// The ranks that a launcher (Open MPI's mpirun or its daemon) started on this machine, as /proc
// shows them: its child processes that have the number of a rank in their environments. Which of
// them ended first is known only to who looks often enough. Used by one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>

namespace snug::comm {

inline constexpr const char* kOpenMpiRank = "OMPI_COMM_WORLD_RANK";

class LaunchedRanks {
 public:
  using Clock = std::chrono::steady_clock;

  struct Ended {
    int rank = 0;
    pid_t process = 0;
    Clock::time_point seen;
  };

  explicit LaunchedRanks(pid_t launcher) : launcher_(launcher) {}

  // Notes who is new and who has ended since the last call.
  void look();

  // The first that was seen to have ended. Of several that ended between two looks, the one with
  // the least number.
  const std::optional<Ended>& first_ended() const { return first_ended_; }
  // Whether some were seen, and all of those have ended.
  bool all_ended() const;
  bool launcher_is_there() const;
  // The numbers of those that are stopped (SIGSTOP).
  std::map<int, pid_t> stopped() const;

  // SIGKILL to those that run, then to the launcher.
  void kill_all() const;

 private:
  const pid_t launcher_;
  std::map<int, pid_t> running_;
  bool any_seen_ = false;
  std::optional<Ended> first_ended_;
};

// The process that started the rank which this process is: the nearest ancestor that is no rank
// itself, since a shell or a tool may stand between the two. 0 where no Open MPI did.
pid_t launcher_of_this_rank();

}  // namespace snug::comm
