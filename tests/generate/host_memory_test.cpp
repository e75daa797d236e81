// host_memory means the same for inference as for training: what the host's arenas take and what
// the process holds outside them, compared with what the kernel counts.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "cli/binary_run.h"

namespace snug::cli {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

struct MeasuredRun {
  BinaryRun run;
  int64_t resident_peak_bytes = 0;
};

MeasuredRun measured(const std::vector<std::string>& words) {
  const testing::TemporaryFolder folder;
  const pid_t process = start_snug(words, folder.path());
  int status = 0;
  struct rusage usage {};
  ::wait4(process, &status, 0, &usage);
  MeasuredRun result;
  result.run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.run.out = contents_of(folder / "out");
  result.run.err = contents_of(folder / "err");
  result.resident_peak_bytes = usage.ru_maxrss * 1024;
  return result;
}

BinaryRun with_host_memory(const std::vector<std::string>& words, int64_t bytes) {
  return run_snug(joined(words, {"host_memory=" + std::to_string(bytes)}));
}

// "raise host_memory to 24MiB" -> bytes.
int64_t named_bytes(const std::string& message) {
  std::smatch match;
  if (!std::regex_search(message, match, std::regex("[Rr]aise host_memory to ([0-9]+)MiB")))
    return 0;
  return std::stoll(match[1]) * kMebibyte;
}

class HostMemory : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(HostMemory, IsRefusedJustBelowWhatTheRunTakes) {
  const auto words = joined(GetParam(), {"model=examples/wordnet", "threads=1", "--json"});
  const BinaryRun least = with_host_memory(words, kMebibyte);
  EXPECT_EQ(least.exit_code, 3) << least.output();
  const int64_t named = named_bytes(least.err);
  ASSERT_GT(named, 0) << least.err;

  const MeasuredRun enough = measured(joined(words, {"host_memory=" + std::to_string(named)}));
  ASSERT_EQ(enough.run.exit_code, 0) << enough.run.output();
  const auto device = nlohmann::json::parse(enough.run.out)["device"]["peak_bytes"].get<int64_t>();
  // On a processor the device's arena lies in the same memory, and device_memory limits it.
  const int64_t taken = enough.resident_peak_bytes - device;
  EXPECT_LE(taken, named);
  EXPECT_GE(taken, named - 3 * kMebibyte);

  const BinaryRun less = with_host_memory(words, taken - kMebibyte);
  EXPECT_EQ(less.exit_code, 3) << less.output();
  EXPECT_NE(less.err.find("host_memory is " + std::to_string(taken - kMebibyte)), std::string::npos)
      << less.err;
  EXPECT_NEAR(static_cast<double>(named_bytes(less.err)), static_cast<double>(named), kMebibyte);
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, HostMemory,
    ::testing::Values(std::vector<std::string>{"generate", "prompt=The dog is", "max_new_tokens=8",
                                               "temperature=0"},
                      std::vector<std::string>{"score", "prompt=The dog is an animal"},
                      std::vector<std::string>{"evaluate", "data=examples/wordnet/heldout.jsonl",
                                               "max_new_tokens=2"}),
    [](const auto& test) { return test.param.front(); });

}  // namespace
}  // namespace snug::cli
