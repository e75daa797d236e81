#include "comm/launcher_words.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "comm/launched_ranks.h"

namespace snug::comm {
namespace {

void write_and_close(int file, const std::string& line) {
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
}

// The open file of the process's standard error, with its offset; -1 where this process is not
// allowed to have it.
int shared_stderr_of(pid_t process) {
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0) return -1;
  const auto file = static_cast<int>(::syscall(SYS_pidfd_getfd, descriptor, STDERR_FILENO, 0));
  ::close(descriptor);
  return file;
}

// Opens the process's standard error again. Does not block on a pipe that nobody reads.
int opened_stderr_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/2";
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

bool is_regular(int file) {
  struct stat status = {};
  return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

void say_for_launcher(pid_t launcher, pid_t rank, const std::string& line) {
  if (const int shared = shared_stderr_of(launcher); shared >= 0)
    return write_and_close(shared, line);
  const int opened = opened_stderr_of(launcher);
  const bool may_be_overwritten = opened < 0 || is_regular(opened);
  write_and_close(opened, line);
  if (may_be_overwritten) write_and_close(opened_stderr_of(rank), line);
}

void tell_supervisor(pid_t launcher) {
  const char* text = std::getenv(kSupervisor);
  const pid_t supervisor = text == nullptr ? 0 : std::atoi(text);
  if (supervisor > 1 && parent_of(launcher) == supervisor) ::kill(supervisor, guard_signal());
}

}  // namespace snug::comm
