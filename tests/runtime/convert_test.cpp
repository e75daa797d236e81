#include "runtime/conversion/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace snug::runtime {
namespace {

using base::DType;

TEST(Convert, EveryHalfPrecisionValueIsExactInFp32) {
  std::vector<base::Float16> halves;
  for (uint32_t bits = 0; bits <= 0xffffU; ++bits) halves.push_back({static_cast<uint16_t>(bits)});
  std::vector<float> floats(halves.size());
  convert(DType::f16, halves.data(), DType::f32, floats.data(),
          static_cast<int64_t>(halves.size()));
  for (size_t i = 0; i < halves.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]),
              std::bit_cast<uint32_t>(base::to_float(halves[i])))
        << i;
}

TEST(Convert, Bf16RoundsToNearestAndWidensExactly) {
  const std::vector<float> floats{0.0F,  -0.0F,   1.0F,     1.00390625F, 1.01171875F,
                                  3e38F, 3.4e38F, INFINITY, -INFINITY,   1e-40F};
  const auto count = static_cast<int64_t>(floats.size());
  std::vector<base::BFloat16> narrow(floats.size());
  convert(DType::f32, floats.data(), DType::bf16, narrow.data(), count);
  std::vector<float> back(floats.size());
  convert(DType::bf16, narrow.data(), DType::f32, back.data(), count);
  for (size_t i = 0; i < floats.size(); ++i) {
    EXPECT_EQ(narrow[i].bits, base::to_bfloat16(floats[i]).bits) << floats[i];
    EXPECT_EQ(back[i], base::to_float(narrow[i])) << floats[i];
  }
  EXPECT_EQ(back[3], 1.0F);          // halfway, to even
  EXPECT_EQ(back[4], 1.015625F);     // halfway, to even
  EXPECT_TRUE(std::isinf(back[6]));  // beyond the largest
}

TEST(Convert, NanStaysNan) {
  const float nan = std::bit_cast<float>(0x7f800001U);  // its payload is below bf16's bits
  base::BFloat16 narrow;
  convert(DType::f32, &nan, DType::bf16, &narrow, 1);
  EXPECT_TRUE(std::isnan(base::to_float(narrow)));
}

TEST(Convert, DoublesAndSameTypes) {
  const double doubles[] = {1.0 / 3.0, -2.5e300, 0.125};
  float floats[3];
  convert(DType::f64, doubles, DType::f32, floats, 3);
  EXPECT_EQ(floats[0], static_cast<float>(1.0 / 3.0));
  EXPECT_EQ(floats[1], -INFINITY);
  float copies[3];
  convert(DType::f32, floats, DType::f32, copies, 3);
  EXPECT_EQ(copies[2], 0.125F);
}

}  // namespace
}  // namespace snug::runtime
