#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string_view>

namespace snug::hostile {
namespace {

volatile sig_atomic_t time_is_over = 0;

void note_end_of_time(int) { time_is_over = 1; }

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void set_limits(const Command& command) {
  const rlimit no_dump{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_dump);
  if (command.address_space_bytes == 0) return;
  const auto bytes = static_cast<rlim_t>(command.address_space_bytes);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

void open_streams(const std::filesystem::path& folder) {
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  ::dup2(::open((folder / "in").c_str(), O_RDONLY | O_CREAT, 0600), STDIN_FILENO);
  ::dup2(::open((folder / "out").c_str(), kWrite, 0600), STDOUT_FILENO);
  ::dup2(::open((folder / "err").c_str(), kWrite, 0600), STDERR_FILENO);
}

// Writing 0 moves the writer.
bool enter_group(const std::filesystem::path& group) {
  if (group.empty()) return true;
  const int file = ::open((group / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
  const bool is_in = file >= 0 && ::write(file, "0", 1) == 1;
  ::close(file);
  return is_in;
}

}  // namespace

std::string Ended::last_line() const {
  if (err.empty() || err.back() != '\n') return "(no whole line)";
  if (err.size() == 1) return "";
  const size_t before = err.rfind('\n', err.size() - 2);
  return err.substr(before == std::string::npos ? 0 : before + 1);
}

Deadline::Deadline(unsigned seconds) {
  time_is_over = 0;
  struct sigaction action {};
  action.sa_handler = note_end_of_time;  // without SA_RESTART
  ::sigaction(SIGALRM, &action, nullptr);
  ::alarm(seconds);
}

Deadline::~Deadline() { ::alarm(0); }

bool Deadline::is_over() const { return time_is_over != 0; }

pid_t start(const Command& command, const std::function<void()>& prepare) {
  std::vector<std::string> copies = command.words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::setpgid(0, 0);
  open_streams(command.streams);
  if (!enter_group(command.group)) ::_exit(126);
  set_limits(command);
  prepare();
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

Ended ended(const Command& command, int status, bool timed_out) {
  Ended result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.timed_out = timed_out;
  result.out = contents_of(command.streams / "out");
  result.err = contents_of(command.streams / "err");
  return result;
}

Ended run(const Command& command) {
  const pid_t process = start(command, [] {});
  const Deadline deadline(command.limit_seconds);
  int status = 0;
  bool timed_out = false;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR)
    if (deadline.is_over()) {
      timed_out = true;
      ::kill(process, SIGKILL);
    }
  return ended(command, status, timed_out);
}

}  // namespace snug::hostile
