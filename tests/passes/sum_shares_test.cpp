// A sum of which each rank makes a share: what follows reads that of all ranks.
#include "passes/sharding/sum_shares.h"

#include <gtest/gtest.h>

#include "test_target.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

constexpr std::string_view kLabels = R"(program labels
tensor policy (4) f32 batch step
tensor reference (4) f32 batch step
tensor labels (2) i32 batch step
tensor inverse_pairs (1) f32 batch step
tensor inverse_desirable (1) f32 batch step
tensor inverse_undesirable (1) f32 batch step
tensor measures (6) f32 scalar step
tensor loss (1) f32 scalar step
kl_sums (2) f32 = kl_estimate(policy, reference, labels)
measures, loss = kto(policy, reference, labels, kl_sums, inverse_pairs, inverse_desirable, inverse_undesirable)
)";

TEST(SumShares, JoinsAShareBeforeItIsRead) {
  const TestTarget target([](const auto&) { return true; });
  const program::Program result = sum_shares(parse(kLabels), {.shards = 2, .replicas = 3}, target);
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const std::string text = print(result);
  size_t last = 0;
  for (const char* step : {"= kl_estimate(", "all_reduce(", "await(", "= kto("}) {
    const size_t found = text.find(step);
    ASSERT_NE(found, std::string::npos) << step << " in\n" << text;
    EXPECT_LT(last, found) << step;
    last = found;
  }
  EXPECT_NE(text.find("ranks 6"), std::string::npos) << text;
  EXPECT_EQ(result.operations.size(), 4U);
}

// Nothing else is summed.
TEST(SumShares, LeavesOtherProgramsAsTheyAre) {
  std::string text(kLabels);
  text.resize(text.find("kl_sums (2)"));
  text.insert(text.find("tensor policy"), "tensor kl_sums (2) f32 batch step\n");
  text +=
      "measures, loss = kto(policy, reference, labels, kl_sums, inverse_pairs, inverse_desirable, "
      "inverse_undesirable)\n";
  const TestTarget target([](const auto&) { return true; });
  EXPECT_EQ(print(sum_shares(parse(text), {.shards = 2}, target)), print(parse(text)));
}

}  // namespace
}  // namespace snug::passes
