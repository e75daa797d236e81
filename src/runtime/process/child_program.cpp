#include "runtime/process/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace snug::runtime {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr size_t kReadBytes = size_t{64} << 10;
// A line is a number, with what a program cares to say next to it.
constexpr size_t kMostLineBytes = size_t{1} << 20;
// How long a program may take to end by itself: once it has closed a stream, which the kernel does
// as it ends, and once there is nothing more to do for it.
constexpr auto kEndTime = milliseconds(250);
constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kLookAtEnd = milliseconds(5);

// While it exists, writing to a pipe that nobody reads is an error of this thread, and no signal.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    constexpr timespec kNow{0, 0};
    if (::sigismember(&before_, SIGPIPE) == 0) {
      while (::sigtimedwait(&pipe_, nullptr, &kNow) == SIGPIPE) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  NoPipeSignal(NoPipeSignal&&) = delete;
  NoPipeSignal& operator=(NoPipeSignal&&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

// Both ends are closed in a program that is started.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      base::throw_user_error("A pipe to a program cannot be made: {}", std::strerror(errno));
    read = OwnedDescriptor(ends[0]);
    write = OwnedDescriptor(ends[1]);
  }
  OwnedDescriptor read;
  OwnedDescriptor write;
};

void set_not_to_wait(const OwnedDescriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

// What a program is started with: its streams, its group, and signals as they are by default.
class SpawnSettings {
 public:
  SpawnSettings(const Pipe& input, const Pipe& output, const Pipe& errors) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, input.read.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output.write.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, errors.write.get(), STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  SpawnSettings(SpawnSettings&&) = delete;
  SpawnSettings& operator=(SpawnSettings&&) = delete;

  const posix_spawn_file_actions_t& actions() const { return actions_; }
  const posix_spawnattr_t& attributes() const { return attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

// Reads what is there. False at the end of the stream; `text` is empty where nothing is there yet.
bool read_some(const OwnedDescriptor& descriptor, std::string& text) {
  text.resize(kReadBytes);
  const ssize_t count = ::read(descriptor.get(), text.data(), text.size());
  const bool is_there = count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
  return is_there;
}

std::string how_it_ended(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return fmt::format("it ended with exit code {}", end.si_status);
  return fmt::format("it was ended by signal {} ({})", end.si_status, ::strsignal(end.si_status));
}

}  // namespace

void OwnedDescriptor::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

ChildProgram::ChildProgram(const std::vector<std::string>& words, int64_t memory, Listener listener)
    : listener_(std::move(listener)) {
  if (const std::string problem = start(words); !problem.empty())
    base::throw_user_error("{} cannot be started: {}", words.front(), problem);
  if (memory == 0) return;
  const rlimit limit{static_cast<rlim_t>(memory), static_cast<rlim_t>(memory)};
  ::prlimit(process_, RLIMIT_AS, &limit, nullptr);
}

ChildProgram::~ChildProgram() {
  input_.close();
  wait_for_end(kPatience);
  kill();
  siginfo_t end{};
  while (::waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED) != 0 && errno == EINTR) {
  }
  listen();
}

std::string ChildProgram::start(std::vector<std::string> words) {
  Pipe input;
  Pipe output;
  Pipe errors;
  const SpawnSettings settings(input, output, errors);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(&process_, arguments.front(), &settings.actions(),
                                   &settings.attributes(), arguments.data(), environ);
  if (error != 0) return std::strerror(error);
  input_ = std::move(input.write);
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
  for (const OwnedDescriptor* each : {&input_, &output_, &errors_}) set_not_to_wait(*each);
  return "";
}

// Stages of each turn: wait until one of the streams has something to do; hear what the program
// says; take its answers; give it more of the text.
std::string ChildProgram::ask(const Question& question, std::chrono::duration<double> timeout) {
  const NoPipeSignal no_signal;
  const auto deadline = Clock::now() + duration_cast<Clock::duration>(timeout);
  std::string_view text = question.text;
  size_t count = 0;
  // What it wrote before it was asked answers nothing.
  if (std::string problem = read_lines({}, count); !problem.empty()) return problem;
  while (!text.empty() || count < question.lines) {
    const auto left = duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) {
      listen();
      return fmt::format("it has not answered in time: {} of {} lines are there{}", count,
                         question.lines,
                         count > 0 ? ""
                                   : ", and perhaps it keeps its output back, which print(..., "
                                     "flush=True) does not");
    }
    std::array<pollfd, 3> polled{{{output_.get(), POLLIN, 0},
                                  {errors_.get(), POLLIN, 0},
                                  {text.empty() ? -1 : input_.get(), POLLOUT, 0}}};
    constexpr int64_t kMostWait = 60'000;
    ::poll(polled.data(), polled.size(), static_cast<int>(std::min(left.count() + 1, kMostWait)));
    if (polled[1].revents != 0) listen();
    if (polled[0].revents != 0)
      if (std::string problem = read_lines(question, count); !problem.empty()) return problem;
    if (polled[2].revents != 0)
      if (std::string problem = write_some(text); !problem.empty()) return problem;
  }
  return "";
}

std::string ChildProgram::write_some(std::string_view& text) {
  const ssize_t count = ::write(input_.get(), text.data(), text.size());
  if (count >= 0) {
    text.remove_prefix(static_cast<size_t>(count));
    return "";
  }
  return errno == EAGAIN || errno == EINTR ? "" : end_of_program();
}

// `count`: the lines that were taken so far.
std::string ChildProgram::read_lines(const Question& question, size_t& count) {
  std::string read;
  if (!read_some(output_, read)) return end_of_program();
  std::string_view text = read;
  while (!text.empty()) {
    if (count == question.lines)
      return count == 0
                 ? "it wrote to standard output before it was asked"
                 : fmt::format("it wrote more than the {} lines that it was asked for", count);
    const size_t end = std::min(text.find('\n'), text.size());
    held_.append(text.substr(0, end));
    if (held_.size() > kMostLineBytes)
      return fmt::format("it wrote a line of more than {} bytes", kMostLineBytes);
    if (end == text.size()) return "";
    if (held_.ends_with('\r')) held_.pop_back();
    const std::string line = std::exchange(held_, {});
    if (std::string problem = question.take(count++, line); !problem.empty()) return problem;
    text.remove_prefix(end + 1);
  }
  return "";
}

// The program closed its standard input or output, mostly since it has ended.
std::string ChildProgram::end_of_program() {
  const bool has_ended = wait_for_end(kEndTime);
  if (!has_ended) return "it closed its standard input or output, and goes on";
  siginfo_t end{};
  ::waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED | WNOHANG | WNOWAIT);
  return how_it_ended(end);
}

// Hears what is there, but no more than so much at once: some programs never stop.
void ChildProgram::listen() {
  constexpr int kMostReads = 16;
  std::string text;
  for (int i = 0; i < kMostReads && errors_.get() >= 0; ++i) {
    if (!read_some(errors_, text)) errors_.close();
    if (text.empty()) return;
    listener_(text);
  }
}

// Hears what it says meanwhile. The program stays to be waited for, so that its number is its own
// until its group is killed.
bool ChildProgram::wait_for_end(Clock::duration time) {
  const auto deadline = Clock::now() + time;
  while (true) {
    siginfo_t end{};
    ::waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED | WNOHANG | WNOWAIT);
    listen();
    if (end.si_pid == process_) return true;
    if (Clock::now() >= deadline) return false;
    pollfd polled{errors_.get(), POLLIN, 0};
    ::poll(&polled, 1, static_cast<int>(kLookAtEnd.count()));
  }
}

void ChildProgram::kill() { ::kill(-process_, SIGKILL); }

}  // namespace snug::runtime
