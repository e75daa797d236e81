#include "comm/launch_supervisor.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/console.h"
#include "base/error.h"
#include "comm/launcher_words.h"
#include "comm/transport.h"

namespace snug::comm {
namespace {

using Clock = LaunchedRanks::Clock;

constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP};

// While ranks start they may end before they are known, so they are polled often. Later a rank's
// end is noticed at once.
constexpr auto kStart = std::chrono::seconds(10);
constexpr auto kLookAtStart = std::chrono::milliseconds(2);
constexpr auto kLook = std::chrono::milliseconds(200);

template <typename Signals>
sigset_t set_of(const Signals& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  return set;
}

// Takes one pending signal; -1 when there is none.
int take_signal(const sigset_t& set) {
  constexpr timespec kNow{0, 0};
  return ::sigtimedwait(&set, nullptr, &kNow);
}

// mpirun gets a process group of its own, so that it does not also receive what a terminal or
// "timeout" sends to this process's group: a second signal would make it kill the ranks at once. A
// background group must not read from the terminal. When this process is killed, mpirun receives
// SIGTERM.
[[noreturn]] void become_launcher(std::vector<char*>& words, pid_t parent, const sigset_t& mask) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (const int null = ::open("/dev/null", O_RDONLY); null >= 0) ::dup2(null, STDIN_FILENO);
  ::execv(words[0], words.data());
  base::say("snug: error: {} cannot be started: {}", words[0], std::strerror(errno));
  ::_exit(base::UserError::kExitCode);
}

}  // namespace

LaunchSupervisor::LaunchSupervisor(std::vector<std::string> command, int ranks,
                                   std::chrono::seconds patience)
    : command_(std::move(command)), ranks_(ranks), patience_(patience) {}

int LaunchSupervisor::run() {
  start();
  LaunchedRanks ranks(launcher_);
  const auto begin = Clock::now();
  int status = 0;
  while (true) {
    const bool is_start = std::ssize(ranks.seen()) < ranks_ && Clock::now() - begin < kStart;
    ranks.wait(is_start ? kLookAtStart : kLook);
    // Runs before the wait for mpirun, so that ranks that it leaves behind are still known as its
    // own.
    look_after(ranks);
    pass_on_signals();
    const pid_t ended = ::waitpid(launcher_, &status, WNOHANG);
    if (ended == launcher_) break;
  }
  const int code = exit_code(status);
  hear_guards();
  // mpirun does not always say which rank failed.
  if (code > 128 && signal_ == 0 && !killed_ && !guard_spoke_)
    base::say("snug: error: {}; mpirun ended with exit code {}", who_is_gone(ranks), code);
  // With -q, mpirun does not say why it cannot start a program.
  else if (code != 0 && signal_ == 0 && ranks.seen().empty())
    base::say(
        "snug: error: {} ended with exit code {} and no rank was seen; if nothing above says why, "
        "run it with -v in place of -q: {}",
        command_.front(), code, fmt::join(command_, " "));
  return code;
}

void LaunchSupervisor::start() {
  sigset_t watched = set_of(kPassedOn);
  ::sigaddset(&watched, guard_signal());
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  std::vector<char*> words;
  for (std::string& word : command_) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t self = ::getpid();
  launcher_ = ::fork();
  if (launcher_ == 0) become_launcher(words, self, before);
  if (launcher_ < 0)
    base::throw_user_error("{} cannot be started: {}", command_[0], std::strerror(errno));
}

void LaunchSupervisor::pass_on_signals() {
  const sigset_t passed_on = set_of(kPassedOn);
  for (int signal = take_signal(passed_on); signal > 0; signal = take_signal(passed_on)) {
    if (signal_ == 0) signal_ = signal;
    ::kill(launcher_, signal);
  }
}

void LaunchSupervisor::hear_guards() {
  const sigset_t said = set_of(std::array{guard_signal()});
  while (take_signal(said) > 0) guard_spoke_ = true;
}

void LaunchSupervisor::look_after(LaunchedRanks& ranks) {
  ranks.look();
  hear_guards();
  const auto& ended = ranks.first_ended();
  if (killed_ || !ended || Clock::now() - ended->seen < patience_) return;
  // A guard kills a rank only after it has said why.
  base::say("snug: error: {}mpirun did not end the job within {} s; all ranks are ended now",
            guard_spoke_ ? "" : who_is_gone(ranks) + ", and ", patience_.count());
  ranks.kill_all();
  killed_ = true;
}

// mpirun starts all ranks before it ends any, so a rank that was never seen is the one that ended
// first.
std::string LaunchSupervisor::who_is_gone(const LaunchedRanks& ranks) const {
  std::vector<int> unseen;
  for (int rank = 0; rank < ranks_; ++rank)
    if (!ranks.seen().contains(rank)) unseen.push_back(rank);
  if (!unseen.empty()) return rank_list(unseen) + " ended while the ranks were being started";
  if (!ranks.first_ended()) return "mpirun ended before its ranks";
  return fmt::format("rank {} is gone: its process {} ended first", ranks.first_ended()->rank,
                     ranks.first_ended()->process);
}

int LaunchSupervisor::exit_code(int status) const {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code != 0 && signal_ != 0 ? 128 + signal_ : code;
}

}  // namespace snug::comm
