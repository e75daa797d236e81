#include "comm/launched_ranks.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace snug::comm {
namespace {

namespace fs = std::filesystem;

std::string contents_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

fs::path folder_of(pid_t process) { return fs::path("/proc") / std::to_string(process); }

struct State {
  char letter = 'X';  // as in /proc/PID/stat; X where there is no such process
  pid_t parent = 0;
};

// "PID (NAME) STATE PARENT ...", where the name may hold anything.
State state_of(pid_t process) {
  const std::string line = contents_of(folder_of(process) / "stat");
  State state;
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return state;
  std::istringstream(line.substr(end + 1)) >> state.letter >> state.parent;
  return state;
}

bool has_ended(const State& state) { return state.letter == 'Z' || state.letter == 'X'; }

// Each thread has children of its own.
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

// None of a process that has not started its program yet, or has ended.
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

void LaunchedRanks::look() {
  for (auto entry = running_.begin(); entry != running_.end();) {
    const State state = state_of(entry->second);
    if (!has_ended(state) && state.parent == launcher_) {
      ++entry;
      continue;
    }
    if (!first_ended_) first_ended_ = Ended{entry->first, entry->second, Clock::now()};
    entry = running_.erase(entry);
  }
  for (const pid_t child : children_of(launcher_))
    if (!has_ended(state_of(child)))
      if (const auto rank = rank_of(child)) {
        running_[*rank] = child;
        any_seen_ = true;
      }
}

bool LaunchedRanks::all_ended() const { return any_seen_ && running_.empty(); }

bool LaunchedRanks::launcher_is_there() const { return !has_ended(state_of(launcher_)); }

std::map<int, pid_t> LaunchedRanks::stopped() const {
  std::map<int, pid_t> stopped;
  for (const auto& [rank, process] : running_)
    if (state_of(process).letter == 'T') stopped[rank] = process;
  return stopped;
}

void LaunchedRanks::kill_all() const {
  for (const auto& [rank, process] : running_)
    if (state_of(process).parent == launcher_) ::kill(process, SIGKILL);
  ::kill(launcher_, SIGKILL);
}

pid_t launcher_of_this_rank() {
  if (!rank_of(::getpid())) return 0;
  pid_t process = ::getppid();
  while (process > 1 && rank_of(process)) process = state_of(process).parent;
  return process > 1 ? process : 0;
}

}  // namespace snug::comm
