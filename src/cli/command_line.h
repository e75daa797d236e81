// The only place that parses command-line arguments.
#pragma once

namespace snug::cli {

// Runs the verb that the arguments name and returns its exit code. Help and the version go to
// standard output and return 0. Throws UserError for arguments that are not understood.
int run(int argc, const char* const* argv);

}  // namespace snug::cli
