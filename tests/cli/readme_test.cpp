// Every snug command of README.md and of the pages of docs/, run as it stands and in its order, by
// the built binary, next to the output that the page shows. Those that start ranks need its MPI.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../base/temporary_folder.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

// A command of a page as it stands there, and the lines below it in the same block: what it prints,
// where "..." stands for any lines. "# exit code N" at its end says how it ends.
struct Command {
  std::string line;
  std::vector<std::string> shown;

  int exit_code() const {
    std::smatch found;
    return std::regex_search(line, found, std::regex("# exit code ([0-9]+)$")) ? std::stoi(found[1])
                                                                               : 0;
  }
};

// Indented lines of a page that begin with the word, each with the indented lines below it.
std::vector<Command> commands_of(const fs::path& page, const std::string& word) {
  std::vector<Command> commands;
  bool goes_on = false;
  std::ifstream stream(page);
  for (std::string line; std::getline(stream, line);) {
    const bool is_command = line.starts_with(fmt::format("    {} ", word));
    goes_on = is_command || (goes_on && line.starts_with("    "));
    if (is_command)
      commands.push_back({line.substr(4), {}});
    else if (goes_on)
      commands.back().shown.push_back(line.substr(4));
  }
  return commands;
}

// All pages except those whose commands need models that are not here, take long, or do not end.
std::vector<fs::path> pages_to_run() {
  const std::set<std::string> left_out{"calibration.md", "encoder_decoders.md", "experts.md",
                                       "serving.md"};
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator("docs"))
    if (!left_out.contains(entry.path().filename().string())) pages.push_back(entry.path());
  std::sort(pages.begin(), pages.end());
  return pages;
}

bool can_run(const std::string& command) {
#ifdef SNUG_WITH_MPI
  return !command.empty();
#else
  return !command.starts_with("snug train ") || command.find(" devices=") == std::string::npos;
#endif
}

// Words with one space between them, so that a page may break a long line. A plan for a machine of
// the hardware table is the same everywhere; what runs here has figures of its own.
std::string comparable(const std::string& text, bool with_figures) {
  std::istringstream stream(text);
  std::string words;
  for (std::string word; stream >> word;) words += word + " ";
  return with_figures ? words : std::regex_replace(words, std::regex("[0-9][-+0-9.,:e]*"), "#");
}

void expect_shown(const Command& command, const std::string& output) {
  const bool with_figures =
      command.line.starts_with("snug plan ") && command.line.find(" device=") != std::string::npos;
  const std::string printed = comparable(output, with_figures);
  std::string part;
  const auto expect_part = [&] {
    const std::string words = comparable(part, with_figures);
    EXPECT_NE(printed.find(words), std::string::npos) << command.line << "\nis shown with\n"
                                                      << part << "but prints\n"
                                                      << output;
    part.clear();
  };
  for (const std::string& line : command.shown)
    if (line == "...")
      expect_part();
    else
      part += line + "\n";
  expect_part();
}

// For the shell, in this folder, with its output in the file `output`. A server does not end by
// itself: it is asked to, once it is open, at a port that is free.
std::string run_of(const Command& command, const fs::path& folder) {
  // The comment at its end is one for the shell, which would take what follows it.
  const std::string words =
      std::regex_replace(command.line.substr(4), std::regex(" *# exit code [0-9]+"), "");
  const std::string line =
      fmt::format("cd '{}' && '{}'{}", (folder / "").string(), SNUG_BINARY, words);
  if (!command.line.starts_with("snug serve ")) return line + " > output 2>&1";
  return line +
         " port=0 > output 2>&1 & server=$!; for i in $(seq 200); do grep -q 'is open for' '" +
         (folder / "output").string() +
         "' && break; sleep 0.05; done; kill -TERM $server; wait $server";
}

TEST(Readme, EveryCommandRuns) {
  // A folder that looks like the repository from inside, so that runs/ is written elsewhere.
  const testing::TemporaryFolder folder;
  for (const char* name : {"examples", "tests"})
    fs::create_directory_symlink(fs::absolute(name), folder / name);
  auto commands = commands_of("README.md", "snug");
  ASSERT_GE(commands.size(), 7U);
  for (const fs::path& page : pages_to_run()) {
    const auto more = commands_of(page, "snug");
    commands.insert(commands.end(), more.begin(), more.end());
  }
  for (const Command& command : commands) {
    if (!can_run(command.line)) continue;
    const int status = std::system(run_of(command, folder.path()).c_str());
    std::ifstream output(folder / "output");
    const std::string text{std::istreambuf_iterator<char>(output),
                           std::istreambuf_iterator<char>()};
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == command.exit_code())
        << command.line << "\n"
        << text;
    expect_shown(command, text);
  }
}

// The commands that check a file of a kind alone, with this machine's compiler.
TEST(Readme, CommandsThatCheckAKindRun) {
  if (std::system("command -v g++ > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no g++";
  const auto commands = commands_of("docs/add_a_kind.md", "g++");
  ASSERT_EQ(commands.size(), 3U);
  for (const Command& command : commands) {
#ifndef __x86_64__
    if (command.line.find("-march=x86") != std::string::npos) continue;
#endif
    EXPECT_EQ(std::system(command.line.c_str()), 0) << command.line;
  }
}

TEST(Readme, CommandsOfMakeAreTargetsOfTheMakefile) {
  std::ifstream stream("Makefile");
  const std::string makefile{std::istreambuf_iterator<char>(stream),
                             std::istreambuf_iterator<char>()};
  const auto commands = commands_of("README.md", "make");
  ASSERT_EQ(commands.size(), 3U);
  for (const Command& command : commands)
    EXPECT_NE(makefile.find(fmt::format("\n{}:", command.line.substr(5))), std::string::npos)
        << command.line;
}

}  // namespace
}  // namespace snug::cli
