#include "comm/mpi/guard_process.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/seconds_since.h"
#include "comm/launched_ranks.h"
#include "comm/launcher_words.h"
#include "comm/transport.h"

namespace snug::comm {
namespace {

using Clock = LaunchedRanks::Clock;

constexpr auto kLookAtRanks = std::chrono::milliseconds(50);
// The delay between guards of a machine, which act one after another, so that only the first
// reports an error.
constexpr auto kTurn = std::chrono::milliseconds(200);

// The phase of the rank, as the rank reports it; `gone` is found out by the guard.
enum class GuardState : char { begins = 'b', runs = 'r', ends = 'e', done = 'd', gone = 'g' };

class Guard {
 public:
  Guard(pid_t launcher, pid_t rank_process, int rank, double timeout_seconds,
        std::chrono::milliseconds patience)
      : launcher_(launcher),
        ranks_(launcher),
        rank_process_(rank_process),
        rank_(rank),
        timeout_seconds_(timeout_seconds),
        patience_(patience + rank * kTurn) {}

  void run() {
    while (state_ != GuardState::done && ranks_.launcher_is_there()) {
      listen();
      ranks_.look();
      if (state_ == GuardState::runs) continue;
      if (state_ != GuardState::gone) check_time();
      check_ranks();
    }
  }

 private:
  // Returns at once when there is news, else after a while; while the rank runs, it returns only on
  // news.
  void listen() {
    if (state_ == GuardState::runs) {
      struct pollfd news = {STDIN_FILENO, POLLIN, 0};
      if (::poll(&news, 1, -1) <= 0) return;
    } else if (!ranks_.wait(kLookAtRanks, state_ == GuardState::gone ? -1 : STDIN_FILENO)) {
      return;
    }
    char letter = 0;
    const ssize_t count = ::read(STDIN_FILENO, &letter, 1);
    if (count < 0 && errno == EINTR) return;
    // If the rank was running when it ended, no rank that still runs is inside MPI's initialisation
    // or finalisation.
    was_running_ = state_ == GuardState::runs;
    state_ = count == 1 ? static_cast<GuardState>(letter) : GuardState::gone;
    since_ = Clock::now();
  }

  void check_time() {
    if (base::seconds_since(since_) < timeout_seconds_) return;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", timeout_seconds_);
    const std::vector<int> stopped = ranks_.stopped();
    const std::string why =
        stopped.empty() ? "" : " (stopped by a signal: " + rank_list(stopped) + ")";
    say("rank " + std::to_string(rank_) + ": MPI did not " +
        (state_ == GuardState::begins ? "begin" : "end") + " within " + seconds + " s" + why);
    ::kill(rank_process_, SIGKILL);
    timed_out_ = true;
    state_ = GuardState::gone;
  }

  // A running rank may take long to learn that another one ended, and then has a checkpoint to
  // write.
  void check_ranks() {
    if (state_ == GuardState::gone && was_running_ && !ranks_.all_ended()) return;
    const auto& ended = ranks_.first_ended();
    if (!ended || Clock::now() - ended->seen < patience_ || !ranks_.launcher_is_there()) return;
    // After its time-out this guard has itself killed a rank.
    const std::string who = timed_out_
                                ? ""
                                : "rank " + std::to_string(ended->rank) + " is gone: its process " +
                                      std::to_string(ended->process) + " ended, and ";
    say(who + "the launcher did not end the job; all ranks of this machine are ended now");
    ranks_.kill_all();
    state_ = GuardState::done;
  }

  // The rank's own standard error leads through the launcher, which may no longer read it.
  void say(const std::string& what) const {
    say_for_launcher(launcher_, rank_process_, "snug: error: " + what + "\n");
    tell_supervisor(launcher_);
  }

  const pid_t launcher_;
  LaunchedRanks ranks_;
  const pid_t rank_process_;
  const int rank_;
  const double timeout_seconds_;
  const std::chrono::milliseconds patience_;
  GuardState state_ = GuardState::begins;
  bool was_running_ = false;
  bool timed_out_ = false;
  Clock::time_point since_ = Clock::now();
};

// Of the rank's descriptors the guard keeps only the socket, since the launcher waits until nobody
// can write to a rank's standard streams. It runs in a session of its own, so that no signal to the
// rank's process group reaches it.
[[noreturn]] void run_guard(Guard& guard, int socket) {
  ::prctl(PR_SET_NAME, GuardProcess::kName);
  ::setsid();
  ::dup2(socket, STDIN_FILENO);
  ::closefrom(STDOUT_FILENO);
  guard.run();
  ::_exit(0);
}

// The time that the launcher may take to end the job. Zero where the variable is not set.
std::chrono::milliseconds launcher_patience() {
  const char* text = std::getenv(kLauncherKillTime);
  if (text == nullptr) return {};
  return std::chrono::seconds(2 * std::max(std::atoi(text), 0) + 1);
}

}  // namespace

GuardProcess::GuardProcess(double timeout_seconds, std::chrono::milliseconds patience) {
  const pid_t launcher = launcher_of_this_rank();
  int ends[2];
  if (launcher == 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  const int rank = std::atoi(std::getenv(kOpenMpiRank));
  const pid_t rank_process = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {
    Guard guard(launcher, rank_process, rank, timeout_seconds,
                std::max(patience, launcher_patience()));
    run_guard(guard, ends[0]);
  }
  ::close(ends[0]);
  socket_ = ends[1];
}

GuardProcess::~GuardProcess() {
  if (socket_ >= 0) ::close(socket_);
}

void GuardProcess::done() {
  tell('d');
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

// Where the guard was killed, the rank goes on without it.
void GuardProcess::tell(char phase) const {
  if (socket_ >= 0) ::send(socket_, &phase, 1, MSG_NOSIGNAL);
}

}  // namespace snug::comm
