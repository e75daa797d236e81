// What `snug bench decode` makes of a card, on the emulated device.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/captured_stream.h"
#include "generate/decoding_profile.h"
#include "golden_recipe.h"
#include "library_calls.h"
#include "refusals.h"

namespace snug::testing {
namespace {

// A rate is that of tokens; kernels and graphs are there before the first of them, however long
// that takes.
TEST(EmulatedDecoding, IsTimedWhenItsGraphsAreThere) {
  constexpr std::chrono::milliseconds kGraphTime(1000);
  cuda_emulator::graph_time = kGraphTime;
  const uint64_t before = cuda_emulator::graphs;
  const CapturedStream output(stdout);
  EXPECT_EQ(generate::profile_decoding(
                golden_recipe("basic", {"ids=5 6 7", "temperature=0", "max_new_tokens=4",
                                        "compute_dtype=bf16", "backend=cuda"}),
                true),
            0);
  cuda_emulator::graph_time = std::chrono::milliseconds(0);
  EXPECT_GT(cuda_emulator::graphs, before);
  const auto result = nlohmann::json::parse(output.text());
  EXPECT_EQ(result["new_tokens"], 4);
  EXPECT_LT(result["decode_seconds"].get<double>(),
            std::chrono::duration<double>(kGraphTime).count());
}

}  // namespace
}  // namespace snug::testing
