#include "base/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace snug::base {
namespace {

// Every value of 16 bits, against what it is in 32.
template <typename T>
void expect_all(DType type) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const T value{static_cast<uint16_t>(bits)};
    const float number = to_float(value);
    const bool finite = number - number == 0;
    ASSERT_EQ(first_not_finite(type, &value, 1).has_value(), !finite) << bits;
  }
}

TEST(Finite, KnowsEveryValueOf16Bits) {
  expect_all<BFloat16>(DType::bf16);
  expect_all<Float16>(DType::f16);
}

template <typename T>
void expect_first(DType type) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values(10'000, Limits::max());
  values[0] = Limits::lowest();
  values[1] = Limits::denorm_min();
  values[2] = -T{0};
  const auto elements = static_cast<int64_t>(values.size());
  EXPECT_FALSE(first_not_finite(type, values.data(), elements));
  EXPECT_FALSE(first_not_finite(type, values.data(), 0));
  for (const T wrong : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                        -Limits::quiet_NaN(), Limits::signaling_NaN()})
    for (const size_t at : {0U, 4095U, 4096U, 9999U}) {
      std::vector<T> damaged = values;
      damaged[at] = wrong;
      damaged.back() = wrong;
      EXPECT_EQ(first_not_finite(type, damaged.data(), elements), at);
    }
}

TEST(Finite, FindsTheFirst) {
  expect_first<float>(DType::f32);
  expect_first<double>(DType::f64);
}

TEST(Finite, WholeNumbersAre) {
  const std::vector<uint8_t> bytes(64, 0xff);
  for (const DType type : {DType::u8, DType::i32, DType::i64})
    EXPECT_FALSE(first_not_finite(type, bytes.data(), 64 / size_of(type)));
}

}  // namespace
}  // namespace snug::base
