#include "backends/formulas/random_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "backends/backend.h"
#include "weights_check.h"

namespace snug::backends {
namespace {

constexpr uint32_t kCounts = 1U << 24;

// Over every argument there is.
TEST(RandomValues, LogarithmIsWithinTwoRoundings) {
  double worst = 0;
  for (uint32_t count = 1; count < kCounts; ++count) {
    const double exact = -2.0 * std::log(count / static_cast<double>(kCounts));
    worst = std::max(worst, std::fabs(minus_twice_log(count) - exact) / exact);
  }
  EXPECT_LT(worst, 0x1p-22);
  EXPECT_EQ(minus_twice_log(kCounts), 0.0F);
}

TEST(RandomValues, SineAndCosineAreWithinARounding) {
  double worst = 0;
  for (uint32_t turn = 0; turn < kCounts; ++turn) {
    const double angle = 2.0 * std::numbers::pi * turn / static_cast<double>(kCounts);
    const Direction found = direction(turn);
    worst = std::max({worst, std::fabs(found.cosine - std::cos(angle)),
                      std::fabs(found.sine - std::sin(angle))});
  }
  EXPECT_LT(worst, 0x1p-23);
}

// The bits themselves, which no compiler and no library may change.
TEST(RandomValues, AreTheseBits) {
  const auto root = [](float x) { return std::sqrt(x); };
  const auto hash_of = [&](program::FillForm form) {
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (int64_t group = 0; group < 10'000; ++group)
      for (const float value : value_group({form, {1, 2}, 0.02F}, group, root))
        hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3ULL;
    return hash;
  };
  EXPECT_EQ(hash_of(program::FillForm::normal), 0xdcf92be606948d92ULL);
  EXPECT_EQ(hash_of(program::FillForm::uniform), 0x277152c878db1e4eULL);
}

TEST(RandomValues, AreTheSameOnEveryThread) {
  for (const int threads : {1, 3}) {
    const auto backend = open_backend("cpu", {.threads = threads});
    test::check_fill(*backend);
  }
}

}  // namespace
}  // namespace snug::backends
