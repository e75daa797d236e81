// What no operation of a step shows is measured: files, and of a device the link to its host and
// the host's memory. SNUG_TEST_BACKEND names the backend.
#include "bench/machine_rates.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace snug::bench {
namespace {

namespace fs = std::filesystem;

TEST(MachineRates, AreOfWhatThisMachineHas) {
  const auto backend =
      backends::open_backend(SNUG_TEST_BACKEND, {.threads = 1, .device_memory_bytes = 0});
  const fs::path folder = fs::path(::testing::TempDir()) / ("machine_rates_" SNUG_TEST_BACKEND);
  fs::create_directories(folder);
  std::set<std::string> names;
  for (const plan::RateSample& sample : machine_rates(*backend, 2, folder)) {
    names.insert(sample.name);
    if (sample.name == plan::kHostJoin) {
      EXPECT_GT(sample.seconds, 0);
      EXPECT_LT(sample.seconds, 1);
      continue;
    }
    const double rate = sample.work / sample.seconds;
    EXPECT_GT(rate, 1e6) << sample.name;
    EXPECT_LT(rate, 1e13) << sample.name;
  }
  std::set<std::string> expected{std::string(plan::kStorage)};
  if (backend->device())
    for (const auto name :
         {plan::kLinkToDevice, plan::kLinkToHost, plan::kHostJoin, plan::kHostMemory})
      expected.insert(std::string(name));
  EXPECT_EQ(names, expected);
  EXPECT_TRUE(fs::is_empty(folder)) << "the file that was read is left";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace snug::bench
