// Writes blocks of K kinds (k_layout.h): scales of the sub-blocks are searched (k_search.h),
// rounded to what the block can hold, and the codes computed anew for the rounded scales. A
// sub-block whose scale is rounded to 0 keeps the codes of the search. This file is compiled
// without fused products and sums, for the bytes of ggml.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/gguf/blocks/block_kinds.h"
#include "formats/gguf/blocks/k_layout.h"
#include "formats/gguf/blocks/k_search.h"

namespace snug::formats {
namespace {

constexpr int kQ6KBytes = 210;
constexpr int kQ3KBytes = 110;
constexpr int kSixBits = 63;

// What the codes of a sub-block are rounded with: value = step * (code - zero) - least.
struct Rounding {
  float step = 0;
  float least = 0;
  int zero = 0;
  int codes = 0;  // how many there are
};

template <int kCount>
void round_codes(const float* values, const Rounding& rounding, uint8_t* codes) {
  if (rounding.step == 0) return;
  for (int i = 0; i < kCount; ++i) {
    const int32_t code = nearest_whole((values[i] + rounding.least) / rounding.step);
    codes[i] = static_cast<uint8_t>(
        std::clamp(code, -rounding.zero, rounding.codes - 1 - rounding.zero) + rounding.zero);
  }
}

float rounded_to_half(float value) { return base::to_float(base::to_float16(value)); }

// The largest, or 0 if none is above it.
template <size_t kCount>
float largest_above_zero(const std::array<float, kCount>& values) {
  float largest = 0;
  for (const float value : values) largest = value > largest ? value : largest;
  return largest;
}

// The first of the largest magnitude, or 0 if there is none above it. Sums over huge values give
// NaN, which is none.
template <size_t kCount>
float extreme_scale(const std::array<float, kCount>& values) {
  float extreme = 0;
  for (const float value : values)
    extreme = std::fabs(value) > std::fabs(extreme) ? value : extreme;
  return extreme;
}

template <size_t kCount>
std::array<uint8_t, kCount> six_bit_codes(const std::array<float, kCount>& values, float largest) {
  const float inverse = largest > 0 ? static_cast<float>(kSixBits) / largest : 0.0F;
  std::array<uint8_t, kCount> codes;
  for (size_t i = 0; i < kCount; ++i)
    codes[i] =
        std::min<uint8_t>(kSixBits, static_cast<uint8_t>(nearest_whole(inverse * values[i])));
  return codes;
}

// q4_k and, with a fifth bit, q5_k.
template <int kBits>
void write_q4_or_5_k(const float* values, uint8_t* block) {
  constexpr AffineTrials kTrials =
      kBits == 4 ? AffineTrials{15, -1.0F, 0.1F, 20} : AffineTrials{31, -0.5F, 0.1F, 15};
  KCodes codes;
  std::array<float, KScales::kCount> scales;
  std::array<float, KScales::kCount> leasts;  // subtracted, so not below 0
  for (size_t i = 0; i < KScales::kCount; i += kSubBlockLanes) {
    const AffineFits fits = fit_affine(values + 32 * i, kTrials, codes.data() + 32 * i);
    for (size_t lane = 0; lane < kSubBlockLanes; ++lane) {
      scales[i + lane] = fits.scales[lane];
      leasts[i + lane] = -fits.leasts[lane];
    }
  }
  const float largest_scale = largest_above_zero(scales);
  const float largest_least = largest_above_zero(leasts);
  const KScales narrow{six_bit_codes(scales, largest_scale), six_bit_codes(leasts, largest_least)};
  put_half(largest_scale / kSixBits, block);
  put_half(largest_least / kSixBits, block + 2);
  put_k_scales(narrow, block + 4);
  for (size_t i = 0; i < KScales::kCount; ++i)
    round_codes<32>(values + 32 * i,
                    {half_at(block) * static_cast<float>(narrow.scales[i]),
                     half_at(block + 2) * static_cast<float>(narrow.leasts[i]), 0, 1 << kBits},
                    codes.data() + 32 * i);
  uint8_t* fields = block + 4 + KScales::kBytes;
  if constexpr (kBits == 5) {
    pack_codes<1, 32, 4>(codes.data(), kKBlock, fields);
    fields += kKBlock / 8;
  }
  pack_codes<4, 32>(codes.data(), kKBlock, fields);
}

// The scales of 16 sub-blocks of 16, by fit_q3_k or fit_q6_k.
std::array<float, 16> sixteen_scales(ScaleFits (*fit)(const float*, uint8_t*), const float* values,
                                     KCodes& codes) {
  std::array<float, 16> scales;
  for (size_t i = 0; i < 16; i += kSubBlockLanes)
    std::ranges::copy(fit(values + 16 * i, codes.data() + 16 * i), scales.begin() + i);
  return scales;
}

void write_q3_k(const float* values, uint8_t* block) {
  KCodes codes;
  const auto scales = sixteen_scales(fit_q3_k, values, codes);
  const float extreme = extreme_scale(scales);
  const float inverse = -32.0F / extreme;
  const float step = extreme != 0 ? rounded_to_half(1.0F / inverse) : 0.0F;
  Q3KScales narrow;
  for (size_t i = 0; i < 16; ++i) {
    const auto code = static_cast<int8_t>(extreme != 0 ? nearest_whole(inverse * scales[i]) : -32);
    narrow.scales[i] = static_cast<uint8_t>(std::clamp<int>(code, -32, 31) + Q3KScales::kZero);
    const float own = step * static_cast<float>(narrow.scales[i] - Q3KScales::kZero);
    round_codes<16>(values + 16 * i, {own, 0, 4, 8}, codes.data() + 16 * i);
  }
  pack_codes<1, 32, 2>(codes.data(), kKBlock, block);
  pack_codes<2, 32>(codes.data(), kKBlock, block + 32);
  put_q3_k_scales(narrow, block + 96);
  put_half(step, block + 108);
}

void write_q6_k(const float* values, uint8_t* block) {
  KCodes codes;
  const auto scales = sixteen_scales(fit_q6_k, values, codes);
  const float extreme = extreme_scale(scales);
  if (std::fabs(extreme) < 1e-15F) {
    std::memset(block, 0, kQ6KBytes);
    return;
  }
  const float inverse = -128.0F / extreme;
  put_half(1.0F / inverse, block + 208);
  const float step = half_at(block + 208);
  for (size_t i = 0; i < 16; ++i) {
    const auto code = static_cast<int8_t>(std::min(127, nearest_whole(inverse * scales[i])));
    block[192 + i] = static_cast<uint8_t>(code);
    round_codes<16>(values + 16 * i, {step * static_cast<float>(code), 0, 32, 64},
                    codes.data() + 16 * i);
  }
  pack_codes<4, 64>(codes.data(), kKBlock, block);
  pack_codes<2, 32, 4>(codes.data(), kKBlock, block + 128);
}

template <int kBytes>
void each_k_block_written(void (*write)(const float*, uint8_t*), const float* values,
                          int64_t blocks, uint8_t* bytes) {
  for (int64_t i = 0; i < blocks; ++i) write(values + i * kKBlock, bytes + i * kBytes);
}

}  // namespace

void quantise_q3_k(const float* values, int64_t blocks, uint8_t* bytes) {
  each_k_block_written<kQ3KBytes>(write_q3_k, values, blocks, bytes);
}
void quantise_q4_k(const float* values, int64_t blocks, uint8_t* bytes) {
  each_k_block_written<144>(write_q4_or_5_k<4>, values, blocks, bytes);
}
void quantise_q5_k(const float* values, int64_t blocks, uint8_t* bytes) {
  each_k_block_written<176>(write_q4_or_5_k<5>, values, blocks, bytes);
}
void quantise_q6_k(const float* values, int64_t blocks, uint8_t* bytes) {
  each_k_block_written<kQ6KBytes>(write_q6_k, values, blocks, bytes);
}

}  // namespace snug::formats
