// The binary `snug`. A user's mistake ends here as one paragraph on standard error and its exit
// code: 2, or 3 for a job that does not fit. Everything else that goes wrong exits with 1.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
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

}  // namespace

int main(int argc, char** argv) {
  try {
    return snug::cli::run(argc, argv);
  } catch (const snug::base::UserError& error) {
    return report(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return report("the system has no more memory; plan for less with device_memory=", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}
