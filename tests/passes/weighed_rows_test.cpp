// A loss of pairs of sequences, made of the losses of tokens: the head's gradient comes from its
// training form with every row as it is, and its rows are weighed where the backward pass begins.
#include <gtest/gtest.h>

#include <array>

#include "passes/gradient/differentiate.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

using program::Program;

constexpr std::string_view kPairs = R"(program pairs
tensor x (8, 4) f32 batch step
tensor a (4, 4) f32 weight run
tensor head (6, 4) f32 weight run
tensor targets (8) i32 batch step
tensor inverse_tokens (1) f32 batch step
tensor inverse_pairs (1) f32 batch step
tensor bounds (2, 2) i32 batch step
tensor reference (2) f32 batch step
tensor measures (6) f32 scalar step
tensor loss (1) f32 scalar step
y (8, 4) f32 = matmul(x, a) {transpose_b}
losses (8) f32, token_loss (1) f32 = linear_cross_entropy(y, head, targets, inverse_tokens)
policy (2) f32 = sum_segments(losses, bounds) {scale -1}
measures, loss = dpo(policy, reference, bounds, inverse_pairs)
)";

size_t count(const std::string& text, std::string_view word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(WeighedRows, AreThoseOfTheHeadsGradient) {
  const Program forward = parse(kPairs);
  for (const bool accumulate : {false, true}) {
    const Program result =
        differentiate(forward, std::array{forward.find("a")}, {.accumulate = accumulate});
    EXPECT_EQ(program::verify(result), std::vector<std::string>{});
    const std::string text = print(result);
    size_t last = 0;
    for (const char* step : {"= linear_cross_entropy_train(", "= dpo(", "= dpo_grad(",
                             "= spread_segments(", "= weigh_rows(", "= matmul(a=d.y"}) {
      const size_t found = text.find(step);
      ASSERT_NE(found, std::string::npos) << step << " in\n" << text;
      EXPECT_LT(last, found) << step;
      last = found;
    }
    EXPECT_EQ(count(text, "= linear_cross_entropy"), 1U);
    // The gradient, the loss and what is measured.
    EXPECT_EQ(count(text, "accumulate(x="), accumulate ? 3U : 0U);
  }
}

// The gradient of a head that trains is a sum over rows, which has to wait for what each counts.
TEST(WeighedRows, AHeadThatTrainsIsMultipliedOnceMore) {
  const Program forward = parse(kPairs);
  for (const bool accumulate : {false, true}) {
    const Program result = differentiate(
        forward, std::array{forward.find("a"), forward.find("head")}, {.accumulate = accumulate});
    EXPECT_EQ(program::verify(result), std::vector<std::string>{});
    const std::string text = print(result);
    size_t last = 0;
    for (const char* step :
         {"= linear_cross_entropy(", "= dpo(", "= dpo_grad(", "= spread_segments(",
          "= linear_cross_entropy_train(", "= matmul(a=d.y"}) {
      const size_t found = text.find(step);
      ASSERT_NE(found, std::string::npos) << step << " in\n" << text;
      EXPECT_LT(last, found) << step;
      last = found;
    }
    EXPECT_EQ(count(text, "= weigh_rows("), 0U);
    EXPECT_NE(text.find("inverse_tokens=d.losses"), std::string::npos) << text;
    EXPECT_NE(text.find("gradient.head"), std::string::npos);
    EXPECT_EQ(count(text, "accumulate(x="), accumulate ? 4U : 0U);
  }
}

// What two sums are made of has one gradient, which weighs the rows once.
TEST(WeighedRows, AreWeighedByAllSumsOfTheirLosses) {
  std::string text(kPairs);
  text.resize(text.find("policy (2)"));
  for (const std::string_view line :
       {"tensor answers (2, 2) i32 batch step\n",
        "tensor inverse_chosen_tokens (1) f32 batch step\n", "tensor odds (9) f32 scalar step\n"})
    text.insert(text.find("tensor loss"), line);
  text +=
      "policy (2) f32 = sum_segments(losses, answers) {scale -1}\n"
      "nll (2) f32 = sum_segments(losses, bounds)\n"
      "odds, loss = orpo(policy, nll, answers, inverse_pairs, inverse_chosen_tokens)\n";
  const Program forward = parse(text);
  const Program result = differentiate(forward, std::array{forward.find("a")}, {});
  EXPECT_EQ(program::verify(result), std::vector<std::string>{});
  const std::string printed = print(result);
  EXPECT_EQ(count(printed, "= spread_segments("), 2U);
  EXPECT_EQ(count(printed, "= add("), 1U);
  EXPECT_EQ(count(printed, "= weigh_rows("), 1U);
}

}  // namespace
}  // namespace snug::passes
