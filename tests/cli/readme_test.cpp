// Every snug command of README.md and of the pages of docs/ that have some, run as it stands and in
// its order, by the built binary. Those that start ranks need its MPI.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

// Indented lines of a page that begin with the word.
std::vector<std::string> commands_of(const fs::path& page, const std::string& word) {
  std::vector<std::string> commands;
  std::ifstream stream(page);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with(fmt::format("    {} ", word))) commands.push_back(line.substr(4));
  return commands;
}

bool can_run(const std::string& command) {
#ifdef SNUG_WITH_MPI
  return !command.empty();
#else
  return !command.starts_with("snug train ") || command.find(" devices=") == std::string::npos;
#endif
}

TEST(Readme, EveryCommandRuns) {
  // A folder that looks like the repository from inside, so that runs/ is written elsewhere.
  const testing::TemporaryFolder folder;
  fs::create_directory_symlink(fs::absolute("examples"), folder / "examples");
  auto commands = commands_of("README.md", "snug");
  ASSERT_GE(commands.size(), 7U);
  for (const char* page :
       {"docs/adapters.md", "docs/chat_templates.md", "docs/data.md", "docs/performance.md",
        "docs/freezing.md", "docs/many_devices.md", "docs/offload.md", "docs/preferences.md",
        "docs/program_text.md", "docs/recompute.md", "docs/search.md"}) {
    const auto more = commands_of(page, "snug");
    ASSERT_GE(more.size(), 1U) << page;
    commands.insert(commands.end(), more.begin(), more.end());
  }
  for (const std::string& command : commands) {
    if (!can_run(command)) continue;
    const std::string line = fmt::format("cd '{}' && '{}'{} > output 2>&1", (folder / "").string(),
                                         SNUG_BINARY, command.substr(std::string("snug").size()));
    const int status = std::system(line.c_str());
    std::ifstream output(folder / "output");
    const std::string text{std::istreambuf_iterator<char>(output),
                           std::istreambuf_iterator<char>()};
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command << "\n" << text;
  }
}

TEST(Readme, TheTwoCommandsAreTargetsOfTheMakefile) {
  std::ifstream stream("Makefile");
  const std::string makefile{std::istreambuf_iterator<char>(stream),
                             std::istreambuf_iterator<char>()};
  for (const std::string& command : commands_of("README.md", "make"))
    EXPECT_NE(makefile.find(fmt::format("\n{}:", command.substr(5))), std::string::npos) << command;
}

}  // namespace
}  // namespace snug::cli
