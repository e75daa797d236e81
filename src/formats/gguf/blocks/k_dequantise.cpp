// The values of K kinds (k_layout.h). Each operation rounds once, in the order of the formulas:
// this file is compiled without fused products and sums.
#include "formats/gguf/blocks/block_kinds.h"
#include "formats/gguf/blocks/k_layout.h"

namespace snug::formats {
namespace {

// One sub-block: code * scale - least, for codes that count from -zero.
struct KStep {
  float scale = 0;
  float least = 0;
};
template <int kCount>
void k_values(const uint8_t* codes, KStep step, float* values) {
  for (int i = 0; i < kCount; ++i)
    values[i] = step.scale * static_cast<float>(codes[i]) - step.least;
}
template <int kCount>
void k_values_around(int zero, const uint8_t* codes, float scale, float* values) {
  for (int i = 0; i < kCount; ++i) values[i] = scale * static_cast<float>(codes[i] - zero);
}

void q2_k_block(const uint8_t* block, float* values) {
  const float step = half_at(block + 80);
  const float least = half_at(block + 82);
  KCodes codes{};
  unpack_codes<2, 32>(block + 16, kKBlock, codes.data());
  for (int i = 0; i < 16; ++i)
    k_values<16>(
        codes.data() + 16 * i,
        {step * static_cast<float>(block[i] & 15), least * static_cast<float>(block[i] >> 4)},
        values + 16 * i);
}

void q3_k_block(const uint8_t* block, float* values) {
  const float step = half_at(block + 108);
  const Q3KScales scales = q3_k_scales_at(block + 96);
  KCodes codes{};
  unpack_codes<1, 32, 2>(block, kKBlock, codes.data());
  unpack_codes<2, 32>(block + 32, kKBlock, codes.data());
  for (size_t i = 0; i < 16; ++i)
    k_values_around<16>(4, codes.data() + 16 * i,
                        step * static_cast<float>(scales.scales[i] - Q3KScales::kZero),
                        values + 16 * i);
}

// q4_k and, with a fifth bit, q5_k.
template <int kBits>
void q4_or_5_k_block(const uint8_t* block, float* values) {
  const float step = half_at(block);
  const float least = half_at(block + 2);
  const KScales scales = k_scales_at(block + 4);
  const uint8_t* fields = block + 4 + KScales::kBytes;
  KCodes codes{};
  if constexpr (kBits == 5) {
    unpack_codes<1, 32, 4>(fields, kKBlock, codes.data());
    fields += kKBlock / 8;
  }
  unpack_codes<4, 32>(fields, kKBlock, codes.data());
  for (size_t i = 0; i < KScales::kCount; ++i)
    k_values<32>(
        codes.data() + 32 * i,
        {step * static_cast<float>(scales.scales[i]), least * static_cast<float>(scales.leasts[i])},
        values + 32 * i);
}

void q6_k_block(const uint8_t* block, float* values) {
  const float step = half_at(block + 208);
  KCodes codes{};
  unpack_codes<4, 64>(block, kKBlock, codes.data());
  unpack_codes<2, 32, 4>(block + 128, kKBlock, codes.data());
  for (int i = 0; i < 16; ++i)
    k_values_around<16>(32, codes.data() + 16 * i,
                        step * static_cast<float>(static_cast<int8_t>(block[192 + i])),
                        values + 16 * i);
}

template <int kBytes>
void each_k_block(void (*dequantise)(const uint8_t*, float*), const uint8_t* bytes, int64_t blocks,
                  float* values) {
  for (int64_t i = 0; i < blocks; ++i) dequantise(bytes + i * kBytes, values + i * kKBlock);
}

}  // namespace

void dequantise_q2_k(const uint8_t* bytes, int64_t blocks, float* values) {
  each_k_block<84>(q2_k_block, bytes, blocks, values);
}
void dequantise_q3_k(const uint8_t* bytes, int64_t blocks, float* values) {
  each_k_block<110>(q3_k_block, bytes, blocks, values);
}
void dequantise_q4_k(const uint8_t* bytes, int64_t blocks, float* values) {
  each_k_block<144>(q4_or_5_k_block<4>, bytes, blocks, values);
}
void dequantise_q5_k(const uint8_t* bytes, int64_t blocks, float* values) {
  each_k_block<176>(q4_or_5_k_block<5>, bytes, blocks, values);
}
void dequantise_q6_k(const uint8_t* bytes, int64_t blocks, float* values) {
  each_k_block<210>(q6_k_block, bytes, blocks, values);
}

}  // namespace snug::formats
