// The ranks that a launcher (Open MPI's mpirun or its daemon) started on this machine, as /proc
// shows them: its child processes that have a rank's number in their environments. Used by one
// thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace snug::comm {

// The variable with the seconds that Open MPI's mpirun gives ranks after it asked them to end; it
// waits for this time twice.
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

  // Notes which ranks are new and which have ended since the last call.
  void look();
  // Returns after this time, or as soon as a rank that look() noted ends or `descriptor` (-1: none)
  // becomes readable; the result is whether it is readable. Also notes the order in which ranks
  // ended, since the launcher ends the others within a millisecond.
  bool wait(std::chrono::milliseconds time, int descriptor = -1);

  // The first rank that was seen to have ended. If several ended between two looks, it is the first
  // by the system's order, or, where the system does not tell the order, one that the launcher has
  // already reaped, since it does so before it ends the others.
  const std::optional<Ended>& first_ended() const { return first_ended_; }
  // The ranks that were seen so far.
  const std::set<int>& seen() const { return seen_; }
  // Whether at least one rank was seen and all that were seen have ended.
  bool all_ended() const { return !seen_.empty() && running_.empty(); }
  bool launcher_is_there() const;
  // The ranks that are stopped (SIGSTOP).
  std::vector<int> stopped() const;

  // Sends SIGKILL to the running ranks, then to the launcher.
  void kill_all() const;

 private:
  struct Process {
    pid_t process = 0;
    int descriptor = -1;  // readable when the process has ended; -1 where the system has none
  };
  void note_ended();
  void note_new();

  void note_order();

  const pid_t launcher_;
  const int endings_;  // an epoll of the processes' descriptors: lists them in order of their ends
  std::vector<int> end_order_;  // ranks, the first to end first
  std::map<int, Process> running_;
  std::set<int> seen_;
  std::optional<Ended> first_ended_;
};

// The launcher of this rank: the nearest ancestor that is not part of the rank itself, since a
// shell or a tool may stand between the two. 0 where Open MPI did not start it.
pid_t launcher_of_this_rank();

// 0 for a process that does not exist.
pid_t parent_of(pid_t process);

}  // namespace snug::comm
