// report.html of a run that goes on: seldom, whole, and no reason to end the run.
#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.h"
#include "planned_example.h"
#include "train/live_report.h"

namespace snug::train {
namespace {

using snug::testing::contains;

class LiveReports : public ::testing::Test {
 protected:
  std::string text() const {
    std::ifstream stream(folder_ / "report.html");
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  void add(const std::string& line) const {
    std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << line << "\n";
  }

  testing::TemporaryFolder folder_;
  report::Example example_{{"model=smollm2-135m", "method=lora", "max_length=64"}};
};

TEST_F(LiveReports, AreThereWhileTheRunGoesOn) {
  LiveReport report(example_.planned, folder_.path(), 40, std::chrono::seconds(0));
  add("{\"step\":1,\"loss\":3.25}");
  report.follow();
  EXPECT_TRUE(contains(text(), "<b>running</b>"));
  EXPECT_TRUE(contains(text(), "<b>1 of 40</b>"));
  // The first one took some time, and so much is not taken again at once.
  add("{\"step\":2,\"loss\":2.5}");
  report.follow();
  EXPECT_TRUE(contains(text(), "<b>1 of 40</b>"));
  report.stop("stopped after step 2");
  EXPECT_TRUE(contains(text(), "<b>stopped after step 2</b>"));
  EXPECT_TRUE(contains(text(), "2.5 (best 2.5)"));
  EXPECT_FALSE(contains(text(), "http-equiv=\"refresh\""));
  report.finish({});
  EXPECT_TRUE(contains(text(), "Planned and measured"));
}

TEST_F(LiveReports, WaitForTheirTime) {
  LiveReport report(example_.planned, folder_.path(), 40);
  add("{\"step\":1,\"loss\":3.25}");
  report.follow();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "report.html"));
}

TEST_F(LiveReports, NeverEndTheRun) {
  LiveReport report(example_.planned, folder_ / "no/such/folder", 40, std::chrono::seconds(0));
  EXPECT_NO_THROW(report.follow());
  EXPECT_NO_THROW(report.stop("stopped"));
}

}  // namespace
}  // namespace snug::train
