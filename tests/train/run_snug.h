// Running the built binary in a process of its own, as a user does.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace snug::test {

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

// Starts the binary with its output in a file; returns the process.
pid_t start_snug(const std::vector<std::string>& words, const std::filesystem::path& output);
// Waits for it: its exit code, or 128 + the signal that ended it.
int wait_for(pid_t process);
Outcome run_snug(const std::vector<std::string>& words);

// The words with `more` added; a key=value of `more` replaces one of the same key.
std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more);

// A folder of its own for a test, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);

}  // namespace snug::test
