// MXFP4 in GGUF files: blocks of 32 values, value = FP4 (E2M1) code * 2^exponent. In the order of
// their bytes: the exponent + 127, 32 codes of 4 bits. Folders of safetensors hold the same codes
// in another order (formats/quantization/mxfp4.h).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "formats/gguf/blocks/block_bytes.h"
#include "formats/gguf/blocks/block_kinds.h"

namespace snug::formats {
namespace {

constexpr int kMxfp4Values = 32;
constexpr int kMxfp4Bytes = 1 + kMxfp4Values / 2;
// The exponent of FP4's largest value, 6, which is the one that the largest of a block may have.
constexpr int kLargestExponent = 2;

// The codes' values, doubled, which makes them whole.
constexpr std::array<float, 16> kDoubledFp4{0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

// 2^(exponent - 128), half of the scale that the byte means, as the codes' values are doubled. Not
// normal for 0 and 1. The byte 255, which the standard has for NaN, counts on here.
float halved_scale(uint8_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000U << exponent
                                           : static_cast<uint32_t>(exponent - 1) << 23);
}

// Below 2^-125 the sum is negative and wraps around; all codes are 0 then.
uint8_t exponent_of(float largest) {
  if (largest == 0) return 0;
  const int exponent = static_cast<int>(std::floor(std::log2(largest))) - kLargestExponent;
  return static_cast<uint8_t>(exponent + 127);
}

// Half-way between the values of a code and the next, for codes 0 to 6. Infinite if the next value
// is.
std::array<float, 7> midpoints(float scale) {
  std::array<float, 7> middles;
  for (size_t i = 0; i < middles.size(); ++i)
    middles[i] = kDoubledFp4[i] * scale * 0.5F + kDoubledFp4[i + 1] * scale * 0.5F;
  return middles;
}

// The code whose value is nearest; of two, the one nearer to 0, and never -0. A magnitude has the
// code of as many midpoints as lie below it.
std::array<uint8_t, kMxfp4Values> nearest_codes(const float* values, float scale) {
  std::array<int32_t, kMxfp4Values> codes{};
  for (const float middle : midpoints(scale))
    for (size_t i = 0; i < kMxfp4Values; ++i) codes[i] += std::fabs(values[i]) > middle ? 1 : 0;
  std::array<uint8_t, kMxfp4Values> signed_codes;
  for (size_t i = 0; i < kMxfp4Values; ++i)
    signed_codes[i] = static_cast<uint8_t>(codes[i] + (values[i] < 0 && codes[i] > 0 ? 8 : 0));
  return signed_codes;
}

}  // namespace

void quantise_mxfp4_blocks(const float* values, int64_t blocks, uint8_t* bytes) {
  for (int64_t block = 0; block < blocks; ++block) {
    float largest = 0;
    for (int i = 0; i < kMxfp4Values; ++i) largest = std::max(largest, std::fabs(values[i]));
    bytes[0] = exponent_of(largest);
    const auto codes = nearest_codes(values, halved_scale(bytes[0]));
    pack_codes<4, 16>(codes.data(), kMxfp4Values, bytes + 1);
    values += kMxfp4Values;
    bytes += kMxfp4Bytes;
  }
}

void dequantise_mxfp4_blocks(const uint8_t* bytes, int64_t blocks, float* values) {
  for (int64_t block = 0; block < blocks; ++block) {
    const float scale = halved_scale(bytes[0]);
    std::array<uint8_t, kMxfp4Values> codes{};
    unpack_codes<4, 16>(bytes + 1, kMxfp4Values, codes.data());
    for (size_t i = 0; i < kMxfp4Values; ++i) values[i] = kDoubledFp4[codes[i]] * scale;
    values += kMxfp4Values;
    bytes += kMxfp4Bytes;
  }
}

}  // namespace snug::formats
