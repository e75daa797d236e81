// Runs the built binary as a user does: through a shell, with its own standard streams.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
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

  // The last paragraph of standard error: progress may stand before an error.
  std::string last_line() const {
    if (err.empty() || err.back() != '\n') return "(no whole line)";
    const size_t before = err.rfind('\n', err.size() - 2);
    return err.substr(before == std::string::npos ? 0 : before + 1);
  }
};

inline std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word)
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  return text + "'";
}

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline BinaryRun run_snug(const std::vector<std::string>& words, const std::string& input = "") {
  const testing::TemporaryFolder folder;
  const auto in = folder.write("in", input);
  std::string command = quoted(SNUG_BINARY);
  for (const std::string& word : words) command += fmt::format(" {}", quoted(word));
  command += fmt::format(" <{} >{} 2>{}", in.string(), (folder / "out").string(),
                         (folder / "err").string());
  const int status = std::system(command.c_str());
  BinaryRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.out = contents_of(folder / "out");
  run.err = contents_of(folder / "err");
  return run;
}

// "a=1 b=2" -> words.
inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

inline std::vector<std::string> joined(std::vector<std::string> first,
                                       const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace snug::cli
