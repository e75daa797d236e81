#include "text/row/epoch_shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/error.h"

namespace snug::text {
namespace {

std::vector<int64_t> taken_of(const std::vector<EntryShare>& entries) {
  std::vector<int64_t> taken;
  for (const EpochPart& part : epoch_shares(entries)) taken.push_back(part.taken);
  return taken;
}

using Taken = std::vector<int64_t>;

TEST(EpochShares, WithoutAWordEachRecordIsTakenOnce) {
  EXPECT_EQ(epoch_shares(std::vector<EntryShare>{{.groups = 5}, {.groups = 0}, {.groups = 7}}),
            (std::vector<EpochPart>{{5, 5}, {0, 0}, {7, 7}}));
}

TEST(EpochShares, RepeatsTakeAPartOrSeveralTimes) {
  EXPECT_EQ(taken_of({{.groups = 10, .repeats = 2},
                      {.groups = 10, .repeats = 0.25},
                      {.groups = 10, .repeats = 1.5},
                      {.groups = 10, .repeats = 0}}),
            (Taken{20, 3, 15, 0}));
}

TEST(EpochShares, RepeatsAboveZeroTakeAtLeastOne) {
  EXPECT_EQ(taken_of({{.groups = 10, .repeats = 0.001}, {.groups = 0, .repeats = 3}}),
            (Taken{1, 0}));
}

TEST(EpochShares, WeightsAreSharesOfAsManyAsThereAre) {
  EXPECT_EQ(
      taken_of(
          {{.groups = 900, .weight = 1}, {.groups = 80, .weight = 2}, {.groups = 20, .weight = 1}}),
      (Taken{250, 500, 250}));
  // Only their ratio counts, and a large sum is one too.
  EXPECT_EQ(taken_of({{.groups = 5, .weight = 1e308}, {.groups = 5, .weight = 1e308}}),
            (Taken{5, 5}));
  EXPECT_EQ(taken_of({{.groups = 5, .weight = 1e-300}, {.groups = 5, .weight = 3e-300}}),
            (Taken{3, 7}));
}

TEST(EpochShares, WhatIsLeftGoesToTheLargestRemainders) {
  // An entry without a record takes no share.
  EXPECT_EQ(taken_of({{.groups = 10, .weight = 1}, {.groups = 0, .weight = 7}}), (Taken{10, 0}));
  // 3.33 of 10 each: the first of those alike.
  EXPECT_EQ(
      taken_of(
          {{.groups = 4, .weight = 1}, {.groups = 3, .weight = 1}, {.groups = 3, .weight = 1}}),
      (Taken{4, 3, 3}));
  // 0.7, 2.6 and 6.7 of 10.
  EXPECT_EQ(taken_of({{.groups = 4, .weight = 0.07},
                      {.groups = 3, .weight = 0.26},
                      {.groups = 3, .weight = 0.67}}),
            (Taken{1, 2, 7}));
}

TEST(EpochShares, AWeightAboveZeroTakesAtLeastOne) {
  EXPECT_EQ(taken_of({{.groups = 2, .weight = 1e-9},
                      {.groups = 1, .weight = 1e-9},
                      {.groups = 3, .weight = 1}}),
            (Taken{1, 1, 4}));
  EXPECT_EQ(taken_of({{.groups = 1, .weight = 1e-9}, {.groups = 1, .weight = 1}}), (Taken{1, 1}));
}

TEST(EpochShares, OfAnyWeightsTheSumIsExactAndNoShareIsOffByOne) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-6, 6);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<EntryShare> entries(1 + random() % 12);
    int64_t total = 0;
    double sum = 0;
    for (EntryShare& entry : entries) {
      entry.groups = random() % 4 == 0 ? 0 : 1 + random() % 1000;
      entry.weight =
          trial % 2 == 0 ? std::exp(exponent(random)) : 1.0 + static_cast<double>(random() % 3);
      total += entry.groups;
      if (entry.groups > 0) sum += entry.weight;
    }
    const std::vector<int64_t> taken = taken_of(entries);
    int64_t all = 0;
    bool is_raised = false;
    for (size_t i = 0; i < entries.size(); ++i) {
      all += taken[i];
      const double exact = static_cast<double>(total) * entries[i].weight / sum;
      ASSERT_EQ(taken[i] > 0, entries[i].groups > 0);
      is_raised = is_raised || (taken[i] == 1 && exact < 1);
    }
    ASSERT_EQ(all, total);
    for (size_t i = 0; i < entries.size() && !is_raised; ++i) {
      if (entries[i].groups == 0) continue;
      const double exact = static_cast<double>(total) * entries[i].weight / sum;
      ASSERT_LT(std::abs(static_cast<double>(taken[i]) - exact), 1 + 1e-9);
    }
  }
}

TEST(EpochShares, MoreThanAnEpochCanTakeIsRefused) {
  const int64_t most = kMostGroups;
  EXPECT_EQ(taken_of({{.groups = most}}), (Taken{most}));
  EXPECT_THROW(taken_of({{.groups = most, .repeats = 1.1}}), base::UserError);
  EXPECT_THROW(taken_of({{.groups = 2, .repeats = 1e300}}), base::UserError);
  try {
    taken_of({{.groups = 1'000'000, .repeats = 2000}});
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("lower repeats"), std::string::npos);
  }
}

}  // namespace
}  // namespace snug::text
