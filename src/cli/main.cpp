// The binary `snug`. A user's mistake ends here as one paragraph on standard error and its exit
// code: 2, or 3 for a job that does not fit. Everything else that goes wrong exits with 1.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/error.h"
#include "cli/command_line.h"

namespace {

int report(std::string message, int exit_code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fflush(stdout);
  fmt::print(stderr, "snug: error: {}\n", message);
  return exit_code;
}

// Threads that wait for each other spin, by libgomp's default for milliseconds, which on a busy
// machine keeps the awaited thread from running. A few microseconds are enough between operations.
// libgomp reads its settings before main, so they are set and the program starts again; a user's
// own settings stand.
void bound_thread_waiting(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "10000", 1);
  ::execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  bound_thread_waiting(argv);
  // A file beyond the size limit is then an error to report, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int exit_code = snug::cli::run(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return report("standard output cannot be written, or not whole", 1);
    return exit_code;
  } catch (const snug::base::UserError& error) {
    return report(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return report("the system has no more memory; plan for less with device_memory=", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
