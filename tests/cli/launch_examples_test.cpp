// The scripts of examples/launch, with a launcher that only writes down what it was asked for.
#include <gtest/gtest.h>

#include <algorithm>

#include "binary_run.h"
#include "cli/request.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {
namespace {

class LaunchExamples : public ::testing::Test {
 protected:
  LaunchExamples() {
    for (const char* launcher : {"srun", "mpirun"}) {
      const auto path = folder_.write(launcher, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
      std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }
  }

  // What the launcher is given, a word each.
  std::vector<std::string> launched(const std::string& script,
                                    const std::vector<std::string>& words) const {
    const std::string path = "PATH=" + folder_.path().string() + ":/usr/bin:/bin";
    const BinaryRun run =
        run_program(joined({"/usr/bin/env", path, "SNUG=snug", "SLURM_CPUS_PER_TASK=8", "/bin/sh",
                            std::filesystem::absolute("examples/launch/" + script).string()},
                           words));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::istringstream lines(run.out);
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    return all;
  }

  // What snug is told of them, after the verb.
  static Request request_of(const std::vector<std::string>& words) {
    const auto verb = std::ranges::find(words, "train");
    EXPECT_NE(verb, words.end());
    if (verb == words.end()) return {};
    return make_request(std::vector<std::string>(verb + 1, words.end()), false);
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(LaunchExamples, WhatTheUserSaysCounts) {
  const std::string recipe = folder_.write("recipe.yaml", "strategy: zero2\n").string();
  for (const char* script : {"slurm_nodes.sbatch", "slurm_one_node.sbatch"}) {
    SCOPED_TRACE(script);
    const formats::Recipe plain = request_of(launched(script, {recipe})).recipe();
    EXPECT_EQ(plain.strategy, formats::Strategy::zero2);
    EXPECT_EQ(plain.threads, 8);
    EXPECT_EQ(plain.resume_from_checkpoint, "auto");
    const formats::Recipe told = request_of(launched(script, {recipe, "strategy=ddp", "threads=3",
                                                              "resume_from_checkpoint=none"}))
                                     .recipe();
    EXPECT_EQ(told.strategy, formats::Strategy::ddp);
    EXPECT_EQ(told.threads, 3);
    EXPECT_EQ(told.resume_from_checkpoint, "none");
  }
  EXPECT_EQ(request_of(launched("mpirun.sh", {"2", recipe, "threads=3"})).recipe().threads, 3);
}

TEST_F(LaunchExamples, OneRankThatFailsEndsAll) {
  for (const char* script : {"slurm_nodes.sbatch", "slurm_one_node.sbatch"}) {
    const std::vector<std::string> words = launched(script, {"seed=1"});
    EXPECT_TRUE(std::ranges::find(words, "--kill-on-bad-exit=1") < std::ranges::find(words, "snug"))
        << script;
  }
}

}  // namespace
}  // namespace snug::cli
