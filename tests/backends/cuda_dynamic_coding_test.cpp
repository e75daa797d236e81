// The arithmetic that finds 8-bit codes on the device against base::encode_dynamic, where the two
// could part: at every value of a map, at every threshold between two, one float below and above.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cuda/optimizer/kernels/dynamic_coding.cuh"
#include "base/dynamic_map.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;

__global__ void encode_kernel(const DynamicMaps maps, int map, const float* values, int64_t count,
                              int* codes) {
  __shared__ Coding codings[2];
  share_codings(maps, codings);
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    codes[i] = encode(codings[map], values[i], map == 0);
}

std::vector<int> codes_of(int map, const std::vector<float>& values) {
  DynamicMaps maps{};
  std::copy_n(base::signed_dynamic_map().begin(), kMapSize, maps.at[0]);
  std::copy_n(base::unsigned_dynamic_map().begin(), kMapSize, maps.at[1]);
  std::vector<int> codes(values.size());
  launch(encode_kernel, {.grid = {}, .block = {kThreads}}, nullptr, maps, map, values.data(),
         static_cast<int64_t>(values.size()), codes.data());
  return codes;
}

// Each, and its neighbours among the floats.
std::vector<float> around(const std::vector<float>& values) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> found;
  for (const float value : values)
    for (const float next :
         {std::nextafter(value, -kInfinity), value, std::nextafter(value, kInfinity)})
      found.push_back(next);
  return found;
}

std::vector<float> critical_values(const base::DynamicMap& map) {
  std::vector<float> values(map.begin(), map.end());
  for (size_t i = 0; i + 1 < map.size(); ++i) values.push_back((map[i] + map[i + 1]) * 0.5F);
  for (const float decade : {1.0F, 0.1F, 0.01F, 1e-3F, 1e-4F, 1e-5F, 1e-6F, 1e-7F, 1e-8F, 1e-38F}) {
    values.push_back(decade);
    values.push_back(-decade);
  }
  std::vector<float> found = around(values);
  std::erase_if(found, [](float value) { return std::fabs(value) > 1.0F; });
  for (const float special : {0.0F, -0.0F, std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::denorm_min()})
    found.push_back(special);
  return found;
}

class DynamicCoding : public ::testing::TestWithParam<int> {
 protected:
  const base::DynamicMap& map() const {
    return GetParam() == 0 ? base::signed_dynamic_map() : base::unsigned_dynamic_map();
  }
  void check(const std::vector<float>& values) const {
    const std::vector<int> codes = codes_of(GetParam(), values);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(codes[i], base::encode_dynamic(map(), values[i])) << std::hexfloat << values[i];
  }
};

TEST_P(DynamicCoding, IsTheNearestWhereItIsCritical) { check(critical_values(map())); }

// As many magnitudes in each decade.
TEST_P(DynamicCoding, IsTheNearestAnywhere) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<float> exponent(-9.0F, 0.0F);
  std::vector<float> values(300000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (i % 2 == 0 ? 1.0F : -1.0F) * std::pow(10.0F, exponent(random));
  check(values);
}

INSTANTIATE_TEST_SUITE_P(SignedAndNot, DynamicCoding, ::testing::Values(0, 1));

}  // namespace
}  // namespace snug::backends::cuda
