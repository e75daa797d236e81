// Programs that reward answers: one that does as it should, and many that do not. None of them
// leaves a process or a descriptor behind, and no failure becomes a reward.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "base/file.h"
#include "train/rewards/command_words.h"
#include "train/rewards/reward_program.h"

namespace snug::train {
namespace {

using testing::contains;

size_t open_descriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class RewardPrograms : public ::testing::Test {
 protected:
  void SetUp() override { descriptors_ = open_descriptors(); }
  void TearDown() override {
    EXPECT_EQ(open_descriptors(), descriptors_);
    EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 0) << "a child is left";
  }

  // A script of the shell as a program.
  std::string script(const std::string& body) {
    const std::filesystem::path file = folder_.write("judge.sh", "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
  }
  std::vector<RewardedAnswer> answers(size_t count, std::string_view text = "a") const {
    return std::vector<RewardedAnswer>(
        count, {.prompt = "Q", .answer = text, .record = &record_, .tokens = 2, .ended = true});
  }
  std::vector<double> judged(const std::string& command, size_t count = 1,
                             ProgramLimits limits = {.timeout_seconds = 20}) {
    return RewardProgram(command, limits, folder_ / "log").judge(answers(count));
  }
  // What it says after two failures; the first is said on the way.
  std::string failure(const std::string& body, ProgramLimits limits = {.timeout_seconds = 20},
                      size_t count = 2) {
    const testing::CapturedStream said(stderr);
    const std::string error = testing::user_error_of([&] { judged(script(body), count, limits); });
    EXPECT_TRUE(contains(said.text(), "failed, and is started again"));
    EXPECT_TRUE(contains(error, "failed twice on the same"));
    return error;
  }

  testing::TemporaryFolder folder_;
  RewardedRecord record_{
      .fields = "{\"prompt\": \"Q\",\n \"gold\": [1.50]}", .file = "f", .line = 1};

 private:
  size_t descriptors_ = 0;
};

TEST_F(RewardPrograms, AreAskedInJsonAndAnswerByLines) {
  const std::string seen = (folder_ / "seen").string();
  const std::string command = script(
      "echo begin >&2\n"
      "read -r a; read -r b; read -r c; read -r d\n"
      "printf '%s\\n' \"$a\" \"$1\" >'" +
      seen +
      "'\n"
      "echo 0.25; echo null; echo '{\"reward\": -2, \"index\": 2, \"why\": \"x\"}'\n"
      "printf tr; sleep 0.05; printf 'ue\\r\\n'");
  std::vector<RewardedAnswer> asked = answers(4);
  asked[0].answer = "caf\xe9 \n\"";
  RewardProgram program(command + " 'two words'", {.timeout_seconds = 20}, folder_ / "log");
  const std::vector<double> rewards = program.judge(asked);
  ASSERT_EQ(rewards.size(), 4U);
  EXPECT_EQ(rewards[0], 0.25);
  EXPECT_TRUE(std::isnan(rewards[1]));
  EXPECT_EQ(rewards[2], -2);
  EXPECT_EQ(rewards[3], 1);
  const std::string lines = base::read_text_file(seen);
  EXPECT_EQ(lines,
            "{\"prompt\":\"Q\",\"completion\":\"caf\xEF\xBF\xBD \\n\\\"\",\"record\":{\"prompt\":"
            "\"Q\",\"gold\":[1.5]},\"index\":0,\"of\":4,\"tokens\":2,\"ended\":true}\ntwo words\n");
  EXPECT_EQ(base::read_text_file(folder_ / "log"), "begin\n");
}

// Far more than pipes hold, both ways, in two batches of one program.
TEST_F(RewardPrograms, AreStartedOnceAndTakeLargeBatches) {
  const std::string starts = (folder_ / "starts").string();
  const std::string command =
      script("echo x >>'" + starts +
             "'\nexec sed -u "
             "'s/.*\"completion\":\"\\(a*\\)\".*/{\"reward\":0.5,\"why\":\"\\1\"}/'");
  RewardProgram program(command, {.timeout_seconds = 60}, {});
  const std::string text(2000, 'a');
  for (int batch = 0; batch < 2; ++batch) {
    const std::vector<double> rewards = program.judge(answers(100, text));
    EXPECT_EQ(rewards, std::vector<double>(100, 0.5));
  }
  EXPECT_EQ(program.judge({}).size(), 0U);
  EXPECT_EQ(base::read_text_file(starts), "x\n");
}

TEST_F(RewardPrograms, ThatDieAreStartedAgainOnce) {
  const testing::CapturedStream said(stderr);
  const std::string mark = (folder_ / "mark").string();
  const std::string command =
      script("test -e '" + mark + "' || { touch '" + mark +
             "'; echo broken >&2; kill -9 $$; }\nwhile read a; do echo 3; done");
  EXPECT_EQ(judged(command, 2), (std::vector<double>{3, 3}));
  EXPECT_TRUE(contains(said.text(), "it was ended by signal 9 (Killed); it said:\nbroken"));
}

TEST_F(RewardPrograms, ThatFailTwiceStopTheRunWithWhatTheySaid) {
  EXPECT_TRUE(contains(failure("echo first >&2; echo 'no module' >&2; exit 3"),
                       "Then: it ended with exit code 3; it said:\nfirst\nno module"));
  EXPECT_TRUE(contains(failure("read a; echo 1"), "it ended with exit code 0"));
  EXPECT_TRUE(
      contains(failure("read a; echo loading; cat >/dev/null"), "its line 1 of 2 is 'loading'"));
  EXPECT_TRUE(
      contains(failure("read a; read b; echo 1; echo one; cat"), "its line 2 of 2 is 'one'"));
  EXPECT_TRUE(contains(failure("read a; read b; printf '\\377\\n\\n'; cat"), "'\\xff'"));
  EXPECT_TRUE(
      contains(failure("read a; read b; echo NaN; echo 1e999"), "its line 1 of 2 is 'NaN'"));
  EXPECT_TRUE(contains(failure("read a; read b; echo '\"1\"'; echo 1"), "it is no number"));
  EXPECT_TRUE(contains(failure("read a; read b; echo '{\"score\": 1}'; echo 1"), "no 'reward'"));
  EXPECT_TRUE(contains(failure("read a; read b; echo '{\"reward\": 1, \"index\": 1}'; echo 1"),
                       "it has the index 1 in place of 0"));
  EXPECT_TRUE(contains(failure("read a; read b; printf '1\\n2\\n3\\n'; cat"),
                       "it wrote more than the 2 lines"));
  EXPECT_TRUE(contains(failure("head -c 3000000 /dev/zero"), "it wrote a line of more than"));
  EXPECT_TRUE(contains(failure("exec <&- ; sleep 20", {.timeout_seconds = 20}, 2000),
                       "it closed its standard input or output, and goes on"));
  EXPECT_TRUE(contains(failure("exec /nowhere/python", {.timeout_seconds = 20}), "not found"));
}

TEST_F(RewardPrograms, ThatAreLateAreKilledWithWhatTheyStarted) {
  const std::string number = (folder_ / "number").string();
  const auto begin = std::chrono::steady_clock::now();
  const std::string error =
      failure("sleep 100 & echo $! >'" + number + "'; echo 1; wait", {.timeout_seconds = 0.4});
  EXPECT_TRUE(contains(error, "it has not answered in time: 1 of 2 lines are there"));
  EXPECT_TRUE(contains(failure("while :; do echo talk >&2; done", {.timeout_seconds = 0.1}),
                       "0 of 2 lines are there, and perhaps it keeps its output back"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  const int grandchild = std::stoi(base::read_text_file(number));
  for (int i = 0; i < 1000 && ::kill(grandchild, 0) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::string state = "gone";
  if (std::filesystem::exists(fmt::format("/proc/{}/stat", grandchild)))
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", grandchild)), state);
  EXPECT_TRUE(state == "gone" || contains(state, ") Z ")) << state;
}

TEST_F(RewardPrograms, HaveAsMuchMemoryAsTheyMay) {
  const std::string body =
      "read a; dd if=/dev/zero of=/dev/null bs=100M count=1 2>&1 >/dev/null | head -n 1 >&2; "
      "echo 1";
  EXPECT_EQ(judged(script(body)), std::vector<double>{1});
  EXPECT_FALSE(contains(base::read_text_file(folder_ / "log"), "memory exhausted"));
  const ProgramLimits limits{.timeout_seconds = 20, .memory = int64_t{50} << 20};
  EXPECT_EQ(judged(script(body), 1, limits), std::vector<double>{1});
  EXPECT_TRUE(contains(base::read_text_file(folder_ / "log"), "memory exhausted"));
}

// It has no descriptor of this process's but its streams (from 10 on they are the shell's own), and
// signals that are ignored here are as they are by default.
TEST_F(RewardPrograms, InheritNothing) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const int open = ::dup(0);
  const std::string seen = (folder_ / "seen").string();
  const std::string ended = (folder_ / "ended").string();
  EXPECT_EQ(judged(script("read a; ls /proc/$$/fd >'" + seen + "'; { yes; echo $? >'" + ended +
                          "'; } | head -n 1 >/dev/null; echo 7")),
            std::vector<double>{7});
  const std::string descriptors = base::read_text_file(seen);
  EXPECT_TRUE(descriptors.starts_with("0\n1\n")) << descriptors;
  EXPECT_EQ(descriptors.find_first_of("3456789"), std::string::npos) << descriptors;
  EXPECT_EQ(base::read_text_file(ended), "141\n");
  ::close(open);
  std::signal(SIGPIPE, before);
}

TEST(CommandWords, AreThoseOfAShell) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_words("  ./judge.py\t--at a"), (Words{"./judge.py", "--at", "a"}));
  EXPECT_EQ(command_words(R"('a b'"c d" \"e\ f "\"$x" '')"),
            (Words{"a bc d", "\"e f", "\"$x", ""}));
  for (const char* wrong : {"", "  ", "a 'b", "a \"b", "a\\", "''"})
    EXPECT_THROW(command_words(wrong), std::invalid_argument) << wrong;
}

}  // namespace
}  // namespace snug::train
