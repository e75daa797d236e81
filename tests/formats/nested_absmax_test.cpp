// Double quantisation against bitsandbytes' own bytes (tests/goldens/nf4/absmax.safetensors).
#include "formats/folder/safetensors_file.h"
#include "formats/quantization/nf4.h"

#include "base/dynamic_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace snug::formats {
namespace {

constexpr const char* kArrays[] = {"few", "one", "equal", "many", "wide"};

template <typename T>
std::vector<T> golden(const std::string& name) {
  static const SafetensorsFile file("tests/goldens/nf4/absmax.safetensors");
  const TensorInfo& info = file.at(name);
  std::vector<T> values(static_cast<size_t>(info.elements()));
  EXPECT_EQ(info.bytes(), std::ssize(values) * static_cast<int64_t>(sizeof(T)));
  file.read(info, values.data());
  return values;
}

// As the script that made the goldens makes it.
std::vector<float> spread(int64_t count) {
  std::vector<float> values;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    const uint64_t mixed = (i * 2654435761U) & 0xFFFFFFFFU;
    values.push_back((1.0F + static_cast<float>(mixed >> 8) * 0x1p-24F) * 0.0625F);
  }
  return values;
}

TEST(NestedAbsmax, MeanIsTorchs) {
  const auto sizes = golden<int32_t>("mean.sizes");
  const auto means = golden<float>("mean.values");
  ASSERT_EQ(sizes.size(), 19U);
  for (size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(mean_absmax(spread(sizes[i]).data(), sizes[i]), means[i]) << sizes[i];
}

TEST(NestedAbsmax, BytesAreThoseOfBitsandbytes) {
  for (const std::string name : kArrays) {
    const auto absmax = golden<float>(name + ".absmax");
    const int64_t blocks = std::ssize(absmax);
    std::vector<uint8_t> codes(absmax.size());
    std::vector<float> nested(static_cast<size_t>(nested_blocks(blocks)));
    EXPECT_EQ(quantize_absmax(absmax.data(), blocks, codes.data(), nested.data()),
              golden<float>(name + ".offset")[0])
        << name;
    EXPECT_EQ(codes, golden<uint8_t>(name + ".codes")) << name;
    EXPECT_EQ(nested, golden<float>(name + ".nested_absmax")) << name;
  }
}

// One block with absmax 1 and offset 0, so that the numbers themselves are encoded.
TEST(NestedAbsmax, CodesAreThoseOfTheMap) {
  const base::DynamicMap& map = base::signed_dynamic_map();
  std::vector<float> values(256, 1.0F);
  for (int turn = 0; turn < 500; ++turn) {
    for (size_t i = 1; i < values.size(); ++i)
      values[i] = std::sin(static_cast<float>(turn * 256) + static_cast<float>(i)) *
                  std::pow(10.0F, static_cast<float>(-turn % 7));
    std::vector<uint8_t> codes(256);
    float nested = 0;
    quantize_absmax(values.data(), 256, 0.0F, codes.data(), &nested);
    ASSERT_EQ(nested, 1.0F);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(codes[i], base::encode_dynamic_lattice(map, values[i])) << values[i];
  }
}

TEST(NestedAbsmax, RangesGiveWhatTheWholeGives) {
  const auto absmax = golden<float>("many.absmax");
  const float offset = golden<float>("many.offset")[0];
  std::vector<uint8_t> codes(1000);
  std::vector<float> nested(4);
  quantize_absmax(absmax.data(), 512, offset, codes.data(), nested.data());
  quantize_absmax(absmax.data() + 512, 488, offset, codes.data() + 512, nested.data() + 2);
  EXPECT_EQ(codes, golden<uint8_t>("many.codes"));
  EXPECT_EQ(nested, golden<float>("many.nested_absmax"));
}

TEST(NestedAbsmax, MapIsThatOfBitsandbytes) {
  const auto map = golden<float>("map");
  EXPECT_TRUE(std::equal(map.begin(), map.end(), base::signed_dynamic_map().begin(),
                         base::signed_dynamic_map().end()));
}

}  // namespace
}  // namespace snug::formats
