#include "pairwise.h"

#include <gtest/gtest.h>

namespace snug::testing {
namespace {

TEST(Pairwise, EveryPairOfValuesIsInSomeCase) {
  const std::vector<size_t> sizes{7, 5, 2, 5, 2, 2, 3};
  const std::vector<Choice> cases = PairwiseCases(sizes, 1).take();
  EXPECT_GE(cases.size(), 7 * 5U);
  EXPECT_LE(cases.size(), 60U) << "a greedy choice needs few more than the largest two dimensions";
  for (size_t a = 0; a < sizes.size(); ++a)
    for (size_t b = a + 1; b < sizes.size(); ++b)
      for (size_t i = 0; i < sizes[a]; ++i)
        for (size_t j = 0; j < sizes[b]; ++j)
          EXPECT_TRUE(std::ranges::any_of(
              cases, [&](const Choice& choice) { return choice.at(a) == i && choice.at(b) == j; }))
              << a << "=" << i << " with " << b << "=" << j;
}

TEST(Pairwise, NoCaseHasAnExcludedPair) {
  const auto is_excluded = [](const PairwiseCases::Pair& pair) {
    return pair.a == 0 && pair.b == 1 && pair.i == 2 && pair.j < 2;
  };
  const std::vector<Choice> cases = PairwiseCases({3, 3, 2, 2}, 1, is_excluded).take();
  const auto has = [&](size_t first, size_t second) {
    return std::ranges::any_of(
        cases, [&](const Choice& choice) { return choice[0] == first && choice[1] == second; });
  };
  for (size_t first = 0; first < 3; ++first)
    for (size_t second = 0; second < 3; ++second)
      EXPECT_EQ(has(first, second), first != 2 || second == 2) << first << " with " << second;
}

TEST(Pairwise, OneSeedGivesTheSameCases) {
  EXPECT_EQ(PairwiseCases({3, 4, 2}, 5).take(), PairwiseCases({3, 4, 2}, 5).take());
}

}  // namespace
}  // namespace snug::testing
