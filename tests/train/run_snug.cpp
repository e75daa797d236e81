#include "run_snug.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace snug::test {

pid_t start_snug(const std::vector<std::string>& words, const std::filesystem::path& output) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  std::vector<char*> arguments;
  std::string binary = SNUG_BINARY;
  arguments.push_back(binary.data());
  std::vector<std::string> copies = words;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(binary.c_str(), arguments.data());
  ::_exit(127);
}

int wait_for(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Outcome run_snug(const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  const auto output = folder.path() / "output";
  Outcome outcome;
  outcome.exit_code = wait_for(start_snug(words, output));
  outcome.output = read_file(output);
  return outcome;
}

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  for (const std::string& word : more) {
    const std::string key = word.substr(0, word.find('=') + 1);
    std::erase_if(words, [&](const std::string& known) { return known.starts_with(key); });
    words.push_back(word);
  }
  return words;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "snug_test_XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace snug::test
