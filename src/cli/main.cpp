// The binary `snug`. A user's mistake ends here as one paragraph on standard error and its exit
// code: 2, or 3 for a job that does not fit. Every other failure exits with 1, except that the
// process ends by SIGPIPE, as other programs do, when the reader of its standard output has closed
// the pipe (| head). With --json an error is also printed as an object on standard output.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mistakes.h"
#include "base/shown_text.h"
#include "cli/command_line.h"
#include "cli/verbs.h"
#include "comm/launch.h"

namespace {

bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
}

// Prints one paragraph per mistake for people. With --json it prints one JSON object, in place of
// the object that the verb would have printed.
int report(std::vector<std::string> messages, int exit_code, bool json) {
  // Messages are cut to this length, since a template or a name that they quote can be of any
  // length.
  constexpr size_t kMaxBytes = 4000;
  for (std::string& message : messages) {
    message = snug::base::ShownLine(message, kMaxBytes).view();
    std::replace(message.begin(), message.end(), '\n', ' ');
  }
  if (json && snug::comm::is_first_rank()) {
    nlohmann::json error{{"exit_code", exit_code},
                         {"message", fmt::format("{}", fmt::join(messages, " "))}};
    if (messages.size() > 1) error["messages"] = messages;
    const nlohmann::json whole{{"error", error}};
    fmt::print("{}\n", whole.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  std::fflush(stdout);
  for (const std::string& message : messages) snug::base::say("snug: error: {}", message);
  return exit_code;
}

// Reporting the error needs a little memory itself, and there may be none left.
int report_no_memory(bool json) {
  constexpr const char* kWhat = "the system has no more memory; plan for less with device_memory=";
  try {
    return report({kWhat}, 1, json);
  } catch (const std::bad_alloc&) {
    snug::base::write_to_console("snug: error: the system has no more memory\n");
    return 1;
  }
}

// SIGPIPE is ignored while the program runs, so that work in progress is cleaned up first; here the
// default action is restored and the signal raised.
int end_as_sigpipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  return 128 + SIGPIPE;
}

// Threads that wait for each other spin, by libgomp's default for milliseconds, which on a busy
// machine keeps the awaited thread from running. A few microseconds are enough between operations.
// libgomp reads its settings before main, so they are set and the program starts again; settings
// that the user made are kept.
void bound_thread_waiting(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "10000", 1);
  ::execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  bound_thread_waiting(argv);
  snug::base::secure_standard_streams();
  const bool json = asks_for_json(argc, argv);
  try {
    const int exit_code = snug::cli::run(argc, argv);
    snug::base::flush_output();
    return exit_code;
  } catch (const snug::cli::ToldError& error) {
    return report({error.what()}, error.exit_code(), false);
  } catch (const snug::base::UserErrors& errors) {
    return report(errors.mistakes(), errors.exit_code(), json);
  } catch (const snug::base::UserError& error) {
    return report({error.what()}, error.exit_code(), json);
  } catch (const std::filesystem::filesystem_error& error) {
    const snug::base::UserError mistake = snug::base::as_user_error(error);
    return report({mistake.what()}, mistake.exit_code(), json);
  } catch (const std::bad_alloc&) {
    return report_no_memory(json);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::broken_pipe) return end_as_sigpipe();
    if (error.code() == std::errc::resource_unavailable_try_again)
      return report({"the system gives this process no more threads; see its limits (ulimit -u, "
                     "ulimit -v), or give fewer with threads="},
                    1, json);
    return report({error.what()}, 1, false);
  } catch (const std::exception& error) {
    return report({error.what()}, 1, json);
  }
}
