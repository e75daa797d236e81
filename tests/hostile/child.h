// A process that the driver starts, under limits, with its own standard streams. Not thread-safe:
// one child at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace snug::hostile {

struct Command {
  std::vector<std::string> words;    // the program's path first
  std::filesystem::path streams;     // holds in (empty where it is not there), out and err
  unsigned limit_seconds = 120;      // killed after that
  int64_t address_space_bytes = 0;   // 0: no limit
  std::filesystem::path group = {};  // a control group's folder to run in; empty: the driver's own
};

struct Ended {
  int exit_code = -1;  // or 128 + the signal that ended it
  bool timed_out = false;
  std::string out;
  std::string err;

  // The last line of standard error: progress may stand before an error.
  std::string last_line() const;
};

// A SIGALRM interrupts waitpid when the time is over.
class Deadline {
 public:
  explicit Deadline(unsigned seconds);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  bool is_over() const;
};

// Forks. The child is the leader of a process group of its own, sets limits and streams, calls
// `prepare` and becomes the program; it exits with 127 where that fails.
pid_t start(const Command& command, const std::function<void()>& prepare);

// What waitpid said of the end, and what the streams hold.
Ended ended(const Command& command, int status, bool timed_out);

Ended run(const Command& command);

}  // namespace snug::hostile
