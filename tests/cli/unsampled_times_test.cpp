// What the binary says of times that no sample of a calibration stands behind.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "binary_run.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

// A card that was measured with dense models alone: its own kernels multiply experts.
std::vector<std::string> mixture(const char* verb, const std::string& more) {
  return joined({verb, "model=gpt-oss-20b", "method=lora", "device=h100"}, words_of(more));
}
constexpr const char* kMeasured =
    "calibration=bench/results/calibration-NVIDIA-H100-80GB-HBM3.json";

TEST(UnsampledTimes, ArePrintedAndMarked) {
  const BinaryRun plan = run_snug(mixture("plan", kMeasured));
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_TRUE(contains(plan.out, "(calibrated; ")) << plan.out;
  EXPECT_TRUE(contains(plan.out, " % of the time without a sample")) << plan.out;
  const BinaryRun explained = run_snug(mixture("explain", kMeasured));
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  std::istringstream lines(explained.out.substr(explained.out.find("slowest operations")));
  int experts = 0;
  int others = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_marked = line.ends_with("  (no sample)");
    if (contains(line, "grouped_matmul")) {
      EXPECT_TRUE(is_marked) << line;
      ++experts;
    } else if (!is_marked) {
      ++others;
    }
  }
  EXPECT_GT(experts, 0);
  EXPECT_GT(others, 3) << "of the head and of attention there are samples";
}

TEST(UnsampledTimes, AreNumbersOfExplain) {
  const BinaryRun run = run_snug(mixture("explain", std::string(kMeasured) + " --json"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json step = json::parse(run.out)["step"];
  double unsampled = 0;
  for (const json& line : step["operations"]) {
    EXPECT_LE(line["unsampled_seconds"].get<double>(), line["seconds"].get<double>() * (1 + 1e-9));
    unsampled += line["unsampled_seconds"].get<double>();
  }
  // One channel: the step waits for all of it.
  EXPECT_NEAR(unsampled, step["unsampled_seconds"].get<double>(), 1e-6 * unsampled);
  EXPECT_GT(unsampled, 0.2 * step["seconds"].get<double>());
}

// Where nothing was measured the basis says so, and no line is marked.
TEST(UnsampledTimes, AreNotMarkedByADataSheet) {
  const BinaryRun run = run_snug(mixture("explain", ""));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "by data sheet rates")) << run.out;
  EXPECT_FALSE(contains(run.out, "(no sample)"));
}

}  // namespace
}  // namespace snug::cli
