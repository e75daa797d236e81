// `snug bench links` as a user runs it: what it refuses, and what it leaves in the calibration
// file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/cache_folder.h"
#include "binary_run.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

// A cache of its own.
class LinksVerb : public ::testing::Test {
 protected:
  LinksVerb() {
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  ~LinksVerb() override { setenv("XDG_CACHE_HOME", cache_before_.c_str(), 1); }

  const std::string cache_before_ = base::cache_folder().parent_path();
  const testing::TemporaryFolder folder_;
};

TEST_F(LinksVerb, OneRankAloneIsToldHowToStartSeveral) {
  for (const char* words : {"", "devices=1"}) {
    const BinaryRun run = run_snug(joined({"bench", "links"}, words_of(words)));
    EXPECT_EQ(run.exit_code, 2) << run.output();
    EXPECT_TRUE(contains(run.last_line(), "mpirun -n 2 snug bench links")) << run.err;
    EXPECT_TRUE(contains(run.last_line(), "devices=2")) << run.err;
  }
}

#ifdef SNUG_MPI_BUILT
// "all_gather 2 ranks" -> how many samples of it.
std::map<std::string, int> links_of(const json& calibration) {
  std::map<std::string, int> counts;
  for (const json& sample : calibration["samples"])
    if (sample["unit"] == "interconnect_bytes") ++counts[sample["operation"]];
  return counts;
}

TEST_F(LinksVerb, ACalibrationThatIsNotThereIsRefused) {
  const std::string path = (folder_ / "none.json").string();
  const BinaryRun run = run_snug({"bench", "links", "devices=2", "calibration=" + path});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_TRUE(contains(run.err, "none.json, which is not there")) << run.err;
  EXPECT_TRUE(contains(run.err, "snug bench calibrate calibration=")) << run.err;
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(LinksVerb, WithoutACalibrationNothingIsWritten) {
  const BinaryRun run = run_snug({"bench", "links", "devices=2", "threads=1"});
  ASSERT_EQ(run.exit_code, 0) << run.output();
  EXPECT_TRUE(contains(run.out, "all_reduce 2 ranks: latency")) << run.out;
  EXPECT_TRUE(contains(run.err, "snug bench calibrate threads=1")) << run.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache"));
}

// The file is found by the threads of a rank, and keeps what either verb measured.
TEST_F(LinksVerb, AndCalibrateKeepEachOthersSamples) {
  ASSERT_EQ(run_snug(words_of("bench calibrate threads=1 max_steps=1")).exit_code, 0);
  const auto files = std::filesystem::directory_iterator(folder_ / "cache/snug");
  const std::filesystem::path path = files->path();
  const json before = json::parse(contents_of(path));
  const std::map<std::string, int> none;
  ASSERT_EQ(links_of(before), none);

  const BinaryRun run = run_snug({"bench", "links", "devices=2", "threads=1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.output();
  EXPECT_TRUE(contains(run.err, "written to " + path.string())) << run.err;
  const json after = json::parse(contents_of(path));
  const auto links = links_of(after);
  EXPECT_EQ(links.size(), 3);
  EXPECT_TRUE(links.contains("all_gather 2 ranks"));
  size_t count = 0;
  for (const auto& [name, samples] : links) count += static_cast<size_t>(samples);
  EXPECT_EQ(json::parse(run.out)["links"].size(), count);
  EXPECT_EQ(json::parse(run.out)["memory"]["operation"], "memory of 2 ranks");
  EXPECT_EQ(after["samples"].size(), before["samples"].size() + count + 1);

  const BinaryRun again = run_snug(words_of("bench calibrate threads=1 max_steps=1"));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(contains(again.err, "links between ranks are kept")) << again.err;
  EXPECT_EQ(links_of(json::parse(contents_of(path))), links);
}
#endif

}  // namespace
}  // namespace snug::cli
