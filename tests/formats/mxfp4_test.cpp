// MXFP4 against transformers' values (tests/goldens/mxfp4, made by scripts/oracles/mxfp4.py).
#include "formats/quantization/mxfp4.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "../base/temporary_folder.h"
#include "formats/folder/safetensors_writer.h"

namespace snug::formats {
namespace {

using base::BFloat16;
using base::DType;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

template <typename T>
std::vector<T> values_of(const TensorIndex& index, const IndexedTensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.info->bytes()) / sizeof(T));
  index.read(tensor, values.data());
  return values;
}

TEST(Mxfp4, IsWhatTransformersMakesOfIt) {
  const TensorIndex index("tests/goldens/mxfp4");
  constexpr int64_t kOut = 66;
  constexpr int64_t kIn = 64;
  const auto parts = find_mxfp4(index, "w", 1, kOut, kIn);
  ASSERT_TRUE(parts);
  const auto blocks = values_of<uint8_t>(index, *parts->blocks);
  const auto scales = values_of<uint8_t>(index, *parts->scales);
  std::vector<BFloat16> values(kIn * kOut);
  decode_transposed({blocks.data(), scales.data(), kOut, kIn}, values.data());
  const auto expected = values_of<BFloat16>(index, index.at("w"));
  ASSERT_EQ(values.size(), expected.size());
  EXPECT_EQ(std::memcmp(values.data(), expected.data(), values.size() * sizeof(BFloat16)), 0);
}

// A row of one block: code 2 and 3 are 1 and 1.5.
float value_with(uint8_t codes, uint8_t scale, size_t column) {
  std::vector<uint8_t> blocks(kMxfp4BlockBytes, codes);
  std::vector<BFloat16> values(kMxfp4BlockSize);
  decode_transposed({blocks.data(), &scale, 1, kMxfp4BlockSize}, values.data());
  return base::to_float(values[column]);
}

TEST(Mxfp4, HoldsTheRangeOfItsScales) {
  EXPECT_EQ(value_with(0x32, 127, 0), 1.0F) << "the lower half comes first";
  EXPECT_EQ(value_with(0x32, 127, 1), 1.5F);
  EXPECT_EQ(value_with(0x11, 0, 0), std::ldexp(1.0F, -128));
  EXPECT_EQ(value_with(0xff, 200, 31), -6 * std::ldexp(1.0F, 73));
  EXPECT_EQ(value_with(0x33, 254, 0), 1.5F * std::ldexp(1.0F, 127));
  EXPECT_TRUE(std::isinf(value_with(0x77, 254, 0)));
  EXPECT_TRUE(std::isnan(value_with(0x22, 255, 0)));
}

TEST(Mxfp4, PartsHaveTheShapeOfTheModel) {
  const TensorIndex index("tests/goldens/mxfp4");
  EXPECT_FALSE(find_mxfp4(index, "v", 1, 66, 64));
  EXPECT_TRUE(contains(user_error_of([&] { find_mxfp4(index, "w", 2, 33, 64); }),
                       "'w_blocks' is [1, 66, 2, 16] of U8; expected [2, 33, 2, 16]"));
  EXPECT_TRUE(contains(user_error_of([&] { find_mxfp4(index, "w", 1, 66, 65); }),
                       "rows of 65 elements; MXFP4 has blocks of 32"));
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "model.safetensors", {{"w_scales", DType::u8, {1, 1, 1}}});
  const uint8_t scale = 0;
  writer.write("w_scales", &scale, 1);
  writer.finish();
  const TensorIndex alone(folder / "");
  EXPECT_TRUE(contains(user_error_of([&] { find_mxfp4(alone, "w", 1, 1, 32); }), "w_blocks"));
}

TEST(Mxfp4, NamesOfPartsNameTheStack) {
  EXPECT_EQ(mxfp4_stack_of("a.gate_up_proj_blocks"), "a.gate_up_proj");
  EXPECT_EQ(mxfp4_stack_of("a.gate_up_proj_scales"), "a.gate_up_proj");
  EXPECT_FALSE(mxfp4_stack_of("a.gate_up_proj_bias"));
}

}  // namespace
}  // namespace snug::formats
