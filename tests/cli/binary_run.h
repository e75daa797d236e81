// Runs the built binary as a user does: in a process of its own, with its own standard streams.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"

namespace snug::cli {

struct BinaryRun {
  int exit_code = -1;
  std::string out;
  std::string err;

  std::string output() const { return out + err; }
  // The last paragraph of standard error: progress may stand before an error.
  std::string last_line() const {
    if (err.empty() || err.back() != '\n') return "(no whole line)";
    const size_t before = err.rfind('\n', err.size() - 2);
    return err.substr(before == std::string::npos ? 0 : before + 1);
  }
};

// Of a file in /proc what was read before its process ended.
inline std::string contents_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Starts a program, the first of the words, with FOLDER/in (empty where it is not there),
// FOLDER/out and FOLDER/err as its standard streams; returns the process. `in_child` runs there
// last, to change them or its limits.
inline pid_t start_program(
    std::vector<std::string> words, const std::filesystem::path& folder,
    const std::function<void()>& in_child = [] {}) {
  const auto in = folder / "in";
  const auto out = folder / "out";
  const auto err = folder / "err";
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  ::dup2(::open(in.c_str(), O_RDONLY | O_CREAT, 0600), STDIN_FILENO);
  ::dup2(::open(out.c_str(), kWrite, 0600), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), kWrite, 0600), STDERR_FILENO);
  in_child();
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

// The same of the binary with these words.
inline pid_t start_snug(
    const std::vector<std::string>& words, const std::filesystem::path& folder,
    const std::function<void()>& in_child = [] {}) {
  std::vector<std::string> all{SNUG_BINARY};
  all.insert(all.end(), words.begin(), words.end());
  return start_program(std::move(all), folder, in_child);
}

// Its exit code, or 128 + the signal that ended it.
inline int wait_for(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline BinaryRun run_program(const std::vector<std::string>& words, const std::string& input = "") {
  const testing::TemporaryFolder folder;
  folder.write("in", input);
  BinaryRun run;
  run.exit_code = wait_for(start_program(words, folder.path()));
  run.out = contents_of(folder / "out");
  run.err = contents_of(folder / "err");
  return run;
}

inline BinaryRun run_snug(const std::vector<std::string>& words, const std::string& input = "") {
  std::vector<std::string> all{SNUG_BINARY};
  all.insert(all.end(), words.begin(), words.end());
  return run_program(all, input);
}

// "a=1 b=2" -> words.
inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

// Of words with the same key the last one counts.
inline std::vector<std::string> joined(std::vector<std::string> first,
                                       const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace snug::cli
