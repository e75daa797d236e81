#include "comm/launch_supervisor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "../base/temporary_folder.h"
#include "comm/launcher_words.h"

namespace snug::comm {
namespace {

namespace fs = std::filesystem;

// A shell's program stands for mpirun. Its word $1 is a file that is there once it is ready.
class Supervised {
 public:
  explicit Supervised(const std::string& program) {
    const std::string errors = (folder_ / "errors").string();
    const std::string ready = (folder_ / "ready").string();
    process_ = ::fork();
    if (process_ != 0) return;
    std::freopen(errors.c_str(), "w", stderr);
    ::_exit(LaunchSupervisor({"/bin/sh", "-c", program, "sh", ready}, 2, std::chrono::seconds(1))
                .run());
  }

  void wait_until_ready() const {
    for (int tries = 0; tries < 1000 && !fs::exists(folder_ / "ready"); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  void send(int signal) const { ::kill(process_, signal); }
  int exit_code() const {
    int status = 0;
    ::waitpid(process_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string text_of(const char* name) const {
    std::ifstream stream(folder_ / name);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

 private:
  testing::TemporaryFolder folder_;
  pid_t process_ = 0;
};

TEST(LaunchSupervisor, EndsAsTheLauncherDoes) {
  EXPECT_EQ(Supervised("exit 0").exit_code(), 0);
  EXPECT_EQ(Supervised("exit 3").exit_code(), 3);
  EXPECT_EQ(Supervised("kill -KILL $$").exit_code(), 128 + SIGKILL);
  const Supervised missing("exec /no/such/program");
  EXPECT_EQ(missing.exit_code(), 127);
}

TEST(LaunchSupervisor, PassesSignalsOnAndEndsByTheirNumber) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Supervised stops("trap 'exit 5' INT TERM HUP; : > $1; while :; do sleep 0.02; done");
    stops.wait_until_ready();
    stops.send(signal);
    EXPECT_EQ(stops.exit_code(), 128 + signal);
  }
  const Supervised ends_well("trap 'exit 0' TERM; : > $1; while :; do sleep 0.02; done");
  ends_well.wait_until_ready();
  ends_well.send(SIGTERM);
  EXPECT_EQ(ends_well.exit_code(), 0);
}

// As mpirun does that hangs: rank 1 is killed, rank 0 waits for it for ever, and nobody ends it.
TEST(LaunchSupervisor, EndsRanksThatTheLauncherLeaves) {
  const Supervised hangs(
      "OMPI_COMM_WORLD_RANK=0 sleep 60 & echo $! > $1; "
      "OMPI_COMM_WORLD_RANK=1 sh -c 'sleep 0.3; kill -KILL $$' & kill -STOP $$");
  EXPECT_EQ(hangs.exit_code(), 128 + SIGKILL);
  const std::string errors = hangs.text_of("errors");
  EXPECT_NE(errors.find("error: rank 1 is gone: its process "), std::string::npos) << errors;
  EXPECT_NE(errors.find("mpirun did not end the job within 1 s"), std::string::npos) << errors;
  const pid_t left = std::stoi(hangs.text_of("ready"));
  const std::string state = "/proc/" + std::to_string(left) + "/stat";
  std::ifstream stream(state);
  const std::string line{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  EXPECT_TRUE(line.empty() || line.find(") Z ") != std::string::npos) << line;
}

// A guard ends a rank of which it has said that it waits for others: that one is not to blame.
TEST(LaunchSupervisor, LeavesToAGuardWhatAGuardHasSaid) {
  const std::string guard_speaks = "kill -" + std::to_string(guard_signal()) + " $PPID; ";
  const std::string rank_ends = "OMPI_COMM_WORLD_RANK=0 sh -c 'sleep 0.3; kill -KILL $$' & ";
  const Supervised ends("OMPI_COMM_WORLD_RANK=1 sleep 60 & other=$!; " + rank_ends + guard_speaks +
                        "wait $!; kill $other; sleep 0.3; exit 137");
  EXPECT_EQ(ends.exit_code(), 137);
  EXPECT_EQ(ends.text_of("errors").find("snug: error"), std::string::npos)
      << ends.text_of("errors");
  const Supervised hangs("OMPI_COMM_WORLD_RANK=1 sleep 60 & " + rank_ends + guard_speaks +
                         "kill -STOP $$");
  EXPECT_EQ(hangs.exit_code(), 128 + SIGKILL);
  const std::string errors = hangs.text_of("errors");
  EXPECT_NE(errors.find("error: mpirun did not end the job within 1 s"), std::string::npos)
      << errors;
}

// mpirun ends the others, and does not always say whose end it was. It ends itself a moment later.
TEST(LaunchSupervisor, NamesTheRankThatEndedFirst) {
  const Supervised ends(
      "OMPI_COMM_WORLD_RANK=0 sleep 60 & other=$!; "
      "OMPI_COMM_WORLD_RANK=1 sh -c 'sleep 0.3; kill -KILL $$' & wait $!; kill $other; sleep 0.3; "
      "exit 137");
  EXPECT_EQ(ends.exit_code(), 137);
  const std::string errors = ends.text_of("errors");
  EXPECT_NE(errors.find("error: rank 1 is gone: its process "), std::string::npos) << errors;
  const Supervised early(
      "OMPI_COMM_WORLD_RANK=1 sleep 60 & sleep 0.3; kill $!; sleep 0.3; exit 137");
  EXPECT_EQ(early.exit_code(), 137);
  EXPECT_NE(early.text_of("errors").find("error: rank 0 ended while the ranks were being started"),
            std::string::npos);
}

}  // namespace
}  // namespace snug::comm
