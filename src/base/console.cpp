#include "base/console.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

#include "base/shown_text.h"

namespace snug::base {
namespace {

// The most that is kept of lines said before a log is open; a command without a log never needs
// more.
constexpr size_t kMaxEarlyBytes = size_t{64} << 10;

struct Console {
  std::mutex mutex;
  int log = -1;
  std::string early;          // lines for a log that is not open yet
  bool line_is_open = false;  // a progress bar ends without a line break
  bool has_failed = false;
  bool is_left_to_others = false;
};

Console& console() {
  static Console console;
  return console;
}

// Returns 0 or the error number. A signal ends the attempt: a stalled reader of a pipe must not
// keep a run from writing its last checkpoint.
int write_whole(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) return errno;
    if (written == 0) return EIO;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// A line for which there is no memory is dropped, as one is that cannot be written.
void keep_early(Console& console, std::string_view part) noexcept {
  if (console.early.size() + part.size() > kMaxEarlyBytes) return;
  try {
    console.early.append(part);
  } catch (const std::bad_alloc&) {
  }
}

void write_to_log(Console& console, std::string_view line) noexcept {
  std::array<char, 32> stamp{};
  const std::time_t now = std::time(nullptr);
  struct tm parts = {};
  ::gmtime_r(&now, &parts);
  const size_t size = std::strftime(stamp.data(), stamp.size(), "%Y-%m-%dT%H:%M:%SZ ", &parts);
  for (const std::string_view part :
       {std::string_view(stamp.data(), size), line, std::string_view("\n")}) {
    if (console.log >= 0)
      write_whole(console.log, part);
    else
      keep_early(console, part);
  }
}

void write_to_stderr(Console& console, std::string_view text) noexcept {
  if (text.empty()) return;
  console.line_is_open = text.back() != '\n';
  const int error = write_whole(STDERR_FILENO, text);
  if (error == 0 || console.has_failed) return;
  console.has_failed = true;
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(),
                "standard error cannot be written (%s); what cannot be written there is dropped, "
                "the job goes on",
                ::strerrordesc_np(error));
  write_to_log(console, line.data());
}

// A line of usual length is written in one call, so that lines of several processes do not mix.
void write_line_to_stderr(Console& console, std::string_view line) noexcept {
  std::array<char, 4096> whole{};
  if (line.size() < whole.size()) {
    line.copy(whole.data(), line.size());
    whole[line.size()] = '\n';
    return write_to_stderr(console, {whole.data(), line.size() + 1});
  }
  write_to_stderr(console, line);
  write_to_stderr(console, "\n");
}

bool has_no_reader(int descriptor) {
  struct pollfd state = {descriptor, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLERR) != 0;
}

[[noreturn]] void throw_output_error() {
  throw std::system_error(has_no_reader(STDOUT_FILENO) ? EPIPE : EIO, std::generic_category(),
                          "standard output cannot be written, or not whole");
}

}  // namespace

void secure_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // open() takes the lowest free number, which is the one just checked. The new descriptor only
    // occupies that number.
    if (::fcntl(descriptor, F_GETFD) < 0) [[maybe_unused]]
      const int holder = ::open("/", O_PATH | O_DIRECTORY);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void write_to_console(std::string_view text) noexcept {
  Console& target = console();
  const std::lock_guard lock(target.mutex);
  write_to_stderr(target, text);
}

void say_line(std::string_view line) noexcept {
  const ShownLine shown(line);
  Console& target = console();
  const std::lock_guard lock(target.mutex);
  write_to_log(target, shown.view());
  if (target.is_left_to_others) return;
  if (target.line_is_open) write_to_stderr(target, "\n");
  write_line_to_stderr(target, shown.view());
}

void say_last_line(std::string_view line) noexcept {
  const ShownLine shown(line);
  Console& target = console();
  const std::lock_guard lock(target.mutex);
  write_line_to_stderr(target, shown.view());
}

void log_line(std::string_view line) noexcept {
  const ShownLine shown(line);
  Console& target = console();
  const std::lock_guard lock(target.mutex);
  write_to_log(target, shown.view());
}

void leave_console_to_others() noexcept {
  Console& target = console();
  const std::lock_guard lock(target.mutex);
  target.is_left_to_others = true;
}

void keep_log(const std::filesystem::path& path) noexcept {
  Console& target = console();
  const std::lock_guard lock(target.mutex);
  if (target.log >= 0) ::close(target.log);
  target.log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (target.log < 0) return;
  write_whole(target.log, target.early);
  target.early.clear();
}

void write_to_output(std::string_view text) {
  const std::string shown = shown_text(text);
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size()) throw_output_error();
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw_output_error();
}

}  // namespace snug::base
