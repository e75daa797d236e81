// The ranks that a launcher (Open MPI's mpirun or its daemon) started on this machine, as /proc
// shows them: its child processes that have the number of a rank in their environments. Used by one
// thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace snug::comm {

// The variable that says how many seconds Open MPI's mpirun gives ranks that it asked to end; it
// waits so long twice.
inline constexpr const char* kLauncherKillTime = "OMPI_MCA_odls_base_sigkill_timeout";

inline constexpr const char* kOpenMpiRank = "OMPI_COMM_WORLD_RANK";

class LaunchedRanks {
 public:
  using Clock = std::chrono::steady_clock;

  struct Ended {
    int rank = 0;
    pid_t process = 0;
    Clock::time_point seen;
  };

  explicit LaunchedRanks(pid_t launcher);
  ~LaunchedRanks();
  LaunchedRanks(const LaunchedRanks&) = delete;
  LaunchedRanks& operator=(const LaunchedRanks&) = delete;

  // Notes who is new and who has ended since the last call.
  void look();
  // Returns after this time, or as soon as one that look() noted ends or `descriptor` (-1: none)
  // can be read; whether it can. Notes in which order they ended: the launcher ends the others
  // within a millisecond.
  bool wait(std::chrono::milliseconds time, int descriptor = -1);

  // The first that was seen to have ended. Of several between two looks, the one that ended first
  // by the system's own order, or, where it tells none, one that the launcher has asked about
  // already, since it asks before it ends others.
  const std::optional<Ended>& first_ended() const { return first_ended_; }
  // The ranks that were seen so far.
  const std::set<int>& seen() const { return seen_; }
  // Whether some were seen, and all of those have ended.
  bool all_ended() const { return !seen_.empty() && running_.empty(); }
  bool launcher_is_there() const;
  // The numbers of those that are stopped (SIGSTOP).
  std::vector<int> stopped() const;

  // SIGKILL to those that run, then to the launcher.
  void kill_all() const;

 private:
  struct Process {
    pid_t process = 0;
    int descriptor = -1;  // can be read when it has ended; -1 where the system has none
  };
  void note_ended();
  void note_new();

  void note_order();

  const pid_t launcher_;
  const int endings_;  // an epoll of the processes' descriptors: in the order of their ends
  std::vector<int> end_order_;  // ranks
  std::map<int, Process> running_;
  std::set<int> seen_;
  std::optional<Ended> first_ended_;
};

// The process that started the rank which this process is: the nearest ancestor that is no rank
// itself, since a shell or a tool may stand between the two. 0 where no Open MPI did.
pid_t launcher_of_this_rank();

// 0 of a process that is not there.
pid_t parent_of(pid_t process);

}  // namespace snug::comm
