#include "comm/self_launch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../base/temporary_folder.h"
#include "base/error.h"

namespace snug::comm {
namespace {

namespace fs = std::filesystem;

void make_program(const fs::path& path) {
  std::ofstream(path) << "#!/bin/sh\n";
  fs::permissions(path, fs::perms::owner_all);
}

constexpr const char* kPatience = "OMPI_MCA_odls_base_sigkill_timeout";

TEST(SelfLaunch, RunsTheSameCommandOnceForEachRank) {
  const testing::TemporaryFolder folder;
  make_program(folder.path() / "mpirun");
  const Variables variables{{"PATH", "/nowhere:" + folder.path().string()}};
  const auto command =
      launch_command(4, "/a b/snug", {"train", "recipe.yaml", "devices=4"}, variables, false);
  const std::vector<std::string> expected{(folder.path() / "mpirun").string(),
                                          "-q",
                                          "-n",
                                          "4",
                                          "--oversubscribe",
                                          "--bind-to",
                                          "none",
                                          "/a b/snug",
                                          "train",
                                          "recipe.yaml",
                                          "devices=4"};
  EXPECT_EQ(command.arguments, expected);
  const std::string self = std::to_string(::getpid());  // which guards of the ranks tell
  EXPECT_EQ(command.added, (Variables{{"SNUG_LAUNCHED", self}, {kPatience, "3"}}));
  EXPECT_EQ(launch_command(4, "snug", {}, variables, true).added,
            (Variables{{"SNUG_LAUNCHED", self},
                       {kPatience, "3"},
                       {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                       {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}));
}

TEST(SelfLaunch, SaysHowToInstallMpirun) {
  try {
    launch_command(2, "snug", {}, {{"PATH", "/nowhere"}}, false);
    ADD_FAILURE();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("apt-get install openmpi-bin"), std::string::npos);
  }
}

TEST(SelfLaunch, RanksStartNoRanks) {
  const testing::TemporaryFolder folder;
  make_program(folder.path() / "mpirun");
  const std::string path = folder.path().string();
  EXPECT_THROW(launch_command(2, "snug", {}, {{"PATH", path}, {"SNUG_LAUNCHED", "1"}}, false),
               base::UserError);
  EXPECT_THROW(
      launch_command(2, "snug", {}, {{"PATH", path}, {"RANK", "0"}, {"WORLD_SIZE", "2"}}, false),
      base::UserError);
}

}  // namespace
}  // namespace snug::comm
