#include "base/dynamic_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "formats/folder/safetensors_file.h"

namespace snug::base {
namespace {

struct Signedness {
  const char* name;
  const DynamicMap& map;
};

class DynamicMaps : public ::testing::TestWithParam<Signedness> {
 protected:
  template <typename T>
  std::vector<T> golden(const char* what) const {
    static const formats::SafetensorsFile file("tests/goldens/dynamic_map/golden.safetensors");
    const auto& info = file.at(std::string(GetParam().name) + "." + what);
    std::vector<T> values(static_cast<size_t>(info.bytes()) / sizeof(T));
    file.read(info, values.data());
    return values;
  }
};

TEST_P(DynamicMaps, EqualBitsandbytes) {
  const std::vector<float> expected = golden<float>("map");
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(GetParam().map[i], expected[i]) << i;
}

// The first 3 x 255 probes are the midpoints and their neighbours, where bitsandbytes' own
// implementations part.
TEST_P(DynamicMaps, TheNearestValueIsFound) {
  const DynamicMap& map = GetParam().map;
  const std::vector<float> x = golden<float>("x");
  const std::vector<int32_t> expected = golden<int32_t>("nearest");
  for (size_t i = 0; i < x.size(); ++i) {
    const int32_t code = encode_dynamic(map, x[i]);
    if (i < size_t{3} * 255)
      EXPECT_LE(std::abs(code - expected[i]), 1) << x[i];
    else
      EXPECT_EQ(code, expected[i]) << x[i];
  }
}

TEST_P(DynamicMaps, TheLatticeIsBitsandbytesOnTheCpu) {
  const std::vector<float> x = golden<float>("x");
  const std::vector<int32_t> expected = golden<int32_t>("lattice");
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(encode_dynamic_lattice(GetParam().map, x[i]), expected[i]) << x[i];
}

TEST_P(DynamicMaps, AMidpointGoesToTheEvenIndexAndItsNeighboursApart) {
  const DynamicMap& map = GetParam().map;
  const float infinity = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 255; ++i) {
    const auto at = static_cast<size_t>(i);
    const float middle = (map[at] + map[at + 1]) * 0.5F;
    EXPECT_EQ(encode_dynamic(map, middle), i % 2 == 0 ? i : i + 1);
    EXPECT_EQ(encode_dynamic(map, std::nextafter(middle, -infinity)), i);
    EXPECT_EQ(encode_dynamic(map, std::nextafter(middle, infinity)), i + 1);
  }
}

TEST_P(DynamicMaps, ThresholdsCountToTheSameCode) {
  const DynamicMap& map = GetParam().map;
  const std::array<float, 255> thresholds = dynamic_thresholds(map);
  for (const float x : golden<float>("x")) {
    int count = 0;
    for (const float threshold : thresholds) count += threshold <= x ? 1 : 0;
    EXPECT_EQ(encode_dynamic(map, x), count) << x;
  }
}

TEST_P(DynamicMaps, EveryValueIsItsOwnCodeAndNanIsTheFirst) {
  const DynamicMap& map = GetParam().map;
  for (int i = 0; i < 256; ++i) EXPECT_EQ(encode_dynamic(map, map[static_cast<size_t>(i)]), i);
  EXPECT_EQ(encode_dynamic(map, std::numeric_limits<float>::quiet_NaN()), 0);
  EXPECT_EQ(encode_dynamic_lattice(map, std::numeric_limits<float>::quiet_NaN()), 0);
}

INSTANTIATE_TEST_SUITE_P(Both, DynamicMaps,
                         ::testing::Values(Signedness{"signed", signed_dynamic_map()},
                                           Signedness{"unsigned", unsigned_dynamic_map()}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace snug::base
