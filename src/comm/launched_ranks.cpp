#include "comm/launched_ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace snug::comm {
namespace {

namespace fs = std::filesystem;

// Reading a file of /proc fails once its process ends; what was read until then is kept.
std::string contents_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

fs::path folder_of(pid_t process) { return fs::path("/proc") / std::to_string(process); }

struct State {
  char letter = 'X';  // as in /proc/PID/stat; X where there is no such process
  pid_t parent = 0;
};

// Parses "PID (NAME) STATE PARENT ...", where the name may hold any characters.
State state_of(pid_t process) {
  const std::string line = contents_of(folder_of(process) / "stat");
  State state;
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return state;
  std::istringstream(line.substr(end + 1)) >> state.letter >> state.parent;
  return state;
}

bool has_ended(const State& state) { return state.letter == 'Z' || state.letter == 'X'; }

// The children of all threads of the process, since /proc lists them by thread.
std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code error;
  for (fs::directory_iterator task(folder_of(process) / "task", error), end; task != end;
       task.increment(error)) {
    std::ifstream stream(task->path() / "children");
    for (pid_t child = 0; stream >> child;) children.push_back(child);
    if (error) break;
  }
  return children;
}

// Nothing for a process that has not started its program yet or has ended.
std::optional<int> rank_of(pid_t process) {
  const std::string environment = '\0' + contents_of(folder_of(process) / "environ");
  const std::string name = '\0' + std::string(kOpenMpiRank) + '=';
  const size_t found = environment.find(name);
  if (found == std::string::npos) return std::nullopt;
  int rank = 0;
  const char* begin = environment.data() + found + name.size();
  const auto [stop, error] = std::from_chars(begin, environment.data() + environment.size(), rank);
  if (error != std::errc()) return std::nullopt;
  return rank;
}

}  // namespace

LaunchedRanks::LaunchedRanks(pid_t launcher)
    : launcher_(launcher), endings_(::epoll_create1(EPOLL_CLOEXEC)) {}

LaunchedRanks::~LaunchedRanks() {
  for (const auto& [rank, process] : running_) ::close(process.descriptor);
  ::close(endings_);
}

void LaunchedRanks::look() {
  note_ended();
  note_new();
}

// The kernel lists descriptors in the order in which they become ready.
void LaunchedRanks::note_order() {
  std::array<struct epoll_event, 64> events;
  const int count = ::epoll_wait(endings_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto rank = static_cast<int>(events[static_cast<size_t>(i)].data.u32);
    if (std::ranges::find(end_order_, rank) == end_order_.end()) end_order_.push_back(rank);
  }
}

void LaunchedRanks::note_ended() {
  note_order();
  std::vector<Ended> zombies, gone;
  for (auto entry = running_.begin(); entry != running_.end();) {
    const auto& [rank, process] = *entry;
    const State state = state_of(process.process);
    if (!has_ended(state) && state.parent == launcher_) {
      ++entry;
      continue;
    }
    (state.letter == 'Z' ? zombies : gone).push_back({rank, process.process, Clock::now()});
    ::close(process.descriptor);
    entry = running_.erase(entry);
  }
  for (const int rank : end_order_)
    for (const auto& ended : {gone, zombies})
      if (const auto found = std::ranges::find(ended, rank, &Ended::rank);
          !first_ended_ && found != ended.end())
        first_ended_ = *found;
  for (const auto& ended : {gone, zombies})
    if (!first_ended_ && !ended.empty()) first_ended_ = ended.front();
}

void LaunchedRanks::note_new() {
  for (const pid_t child : children_of(launcher_)) {
    const auto is_known = [&](const auto& entry) { return entry.second.process == child; };
    if (std::ranges::any_of(running_, is_known) || has_ended(state_of(child))) continue;
    const auto rank = rank_of(child);
    if (!rank) continue;
    const long descriptor = ::syscall(SYS_pidfd_open, child, 0);
    running_[*rank] = {child, static_cast<int>(descriptor)};
    struct epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u32 = static_cast<uint32_t>(*rank);
    if (descriptor >= 0) ::epoll_ctl(endings_, EPOLL_CTL_ADD, static_cast<int>(descriptor), &event);
    seen_.insert(*rank);
  }
}

bool LaunchedRanks::wait(std::chrono::milliseconds time, int descriptor) {
  std::array<struct pollfd, 2> polled{{{descriptor, POLLIN, 0}, {endings_, POLLIN, 0}}};
  ::poll(polled.data(), polled.size(), static_cast<int>(time.count()));
  note_order();
  return polled.front().revents != 0;
}

bool LaunchedRanks::launcher_is_there() const { return !has_ended(state_of(launcher_)); }

std::vector<int> LaunchedRanks::stopped() const {
  std::vector<int> stopped;
  for (const auto& [rank, process] : running_)
    if (state_of(process.process).letter == 'T') stopped.push_back(rank);
  return stopped;
}

void LaunchedRanks::kill_all() const {
  for (const auto& [rank, process] : running_)
    if (state_of(process.process).parent == launcher_) ::kill(process.process, SIGKILL);
  ::kill(launcher_, SIGKILL);
}

pid_t parent_of(pid_t process) { return state_of(process).parent; }

pid_t launcher_of_this_rank() {
  if (!rank_of(::getpid())) return 0;
  pid_t process = ::getppid();
  while (process > 1 && rank_of(process)) process = parent_of(process);
  return process > 1 ? process : 0;
}

}  // namespace snug::comm
