// The binary `snug`. A user's mistake ends here as one paragraph on standard error and its exit
// code: 2, or 3 for a job that does not fit. Everything else that goes wrong exits with 1, except
// that a reader of standard output who went away (| head) ends it as SIGPIPE does elsewhere.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>

#include "base/console.h"
#include "base/error.h"
#include "cli/command_line.h"

namespace {

int report(std::string message, int exit_code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fflush(stdout);
  snug::base::say("snug: error: {}", message);
  return exit_code;
}

// The signal itself is ignored, so that what is under way is tidied up before.
int end_as_sigpipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;
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
  snug::base::secure_standard_streams();
  try {
    const int exit_code = snug::cli::run(argc, argv);
    snug::base::flush_output();
    return exit_code;
  } catch (const snug::base::UserError& error) {
    return report(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return report("the system has no more memory; plan for less with device_memory=", 1);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::broken_pipe) return end_as_sigpipe();
    return report(error.what(), 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
