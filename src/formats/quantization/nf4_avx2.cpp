// Eight elements per vector. The code of an element is found by four comparisons in a binary tree
// of the 15 thresholds, stored in heap order: node n has children 2n and 2n + 1, so each comparison
// gives the next bit of the node's number, and the leaf's number is 16 + code.
#include "formats/quantization/nf4_blocks.h"

#include "base/error.h"
#include "formats/quantization/nf4.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#endif

namespace snug::formats {

#if defined(__x86_64__)
namespace {

#define SNUG_AVX2 __attribute__((target("avx2,f16c")))

constexpr int kVectors = kNf4BlockSize / 8;

// Thresholds of the nodes from `first` to `first` + 7. On the level with 2^k nodes, each node
// divides a range of 16 >> k codes.
constexpr std::array<float, 8> nodes(int first) {
  std::array<float, 8> values{};
  for (int i = 0; i < 8; ++i) {
    const int node = first + i;
    if (node == 0) continue;
    int level = 0;
    while ((node >> (level + 1)) != 0) ++level;
    const int codes = 16 >> level;
    const int place = node - (1 << level);
    values[static_cast<size_t>(i)] =
        kNf4Thresholds[static_cast<size_t>(place * codes + codes / 2 - 1)];
  }
  return values;
}

// The levels with 1, 2 and 4 nodes.
alignas(32) constexpr std::array<float, 8> kUpperNodes = nodes(0);
// The level with 8 nodes.
alignas(32) constexpr std::array<float, 8> kLowerNodes = nodes(8);

SNUG_AVX2 inline __m256 load_eight(const float* source) { return _mm256_loadu_ps(source); }

SNUG_AVX2 inline __m256 load_eight(const base::BFloat16* source) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

SNUG_AVX2 inline __m256 load_eight(const base::Float16* source) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
}

// Compared as integers, magnitudes have the order of their values, with infinity and NaN on top.
SNUG_AVX2 inline float largest_magnitude(const __m256 (&values)[kVectors]) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (const __m256& value : values)
    largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(value), magnitude));
  __m128i half =
      _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return _mm_cvtss_f32(_mm_castsi128_ps(half));
}

// The child node for each scaled element: the upper child unless scaled <= threshold.
SNUG_AVX2 inline __m256i descend(__m256i node, __m256 scaled, __m256 threshold) {
  const __m256i above = _mm256_castps_si256(_mm256_cmp_ps(scaled, threshold, _CMP_NLE_UQ));
  return _mm256_sub_epi32(_mm256_add_epi32(node, node), above);
}

// 16 + code of each element.
SNUG_AVX2 inline __m256i leaves(__m256 scaled) {
  const __m256 upper = _mm256_load_ps(kUpperNodes.data());
  const __m256 lower = _mm256_load_ps(kLowerNodes.data());
  __m256i node = descend(_mm256_set1_epi32(1), scaled, _mm256_set1_ps(kUpperNodes[1]));
  node = descend(node, scaled, _mm256_permutevar8x32_ps(upper, node));
  node = descend(node, scaled, _mm256_permutevar8x32_ps(upper, node));
  return descend(node, scaled, _mm256_permutevar8x32_ps(lower, node));
}

// Packs 32 elements into 16 words of 16 bits with two codes each, the even element's in the high
// bits.
SNUG_AVX2 inline __m256i paired(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i code = _mm256_set1_epi8(15);
  // The packing instructions work within 128-bit halves; the permutation restores the order of
  // groups of four.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
  bytes = _mm256_and_si256(_mm256_permutevar8x32_epi32(bytes, order), code);
  return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x0110));
}

template <typename T>
SNUG_AVX2 void quantize_blocks(const T* source, int64_t blocks, uint8_t* codes, float* absmax) {
  for (int64_t block = 0; block < blocks; ++block) {
    __m256 values[kVectors];
    for (int i = 0; i < kVectors; ++i) values[i] = load_eight(source + 8 * i);
    absmax[block] = largest_magnitude(values);
    const float scale = 1.0F / (absmax[block] < kNf4LeastScale ? kNf4LeastScale : absmax[block]);
    __m256i leaf[kVectors];
    for (int i = 0; i < kVectors; ++i)
      leaf[i] = leaves(_mm256_mul_ps(values[i], _mm256_set1_ps(scale)));
    const __m256i pairs = _mm256_packus_epi16(paired(leaf[0], leaf[1], leaf[2], leaf[3]),
                                              paired(leaf[4], leaf[5], leaf[6], leaf[7]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_permute4x64_epi64(pairs, 0xd8));
    source += kNf4BlockSize;
    codes += kNf4BlockSize / 2;
  }
}

#undef SNUG_AVX2

}  // namespace

bool runs_avx2() {
  // Every CPU with AVX2 also has F16C, for which clang has no check.
  return __builtin_cpu_supports("avx2") != 0;
}

void quantize_blocks_avx2(base::DType from, const void* source, int64_t blocks, uint8_t* codes,
                          float* absmax) {
  switch (from) {
    case base::DType::f32:
      return quantize_blocks(static_cast<const float*>(source), blocks, codes, absmax);
    case base::DType::bf16:
      return quantize_blocks(static_cast<const base::BFloat16*>(source), blocks, codes, absmax);
    case base::DType::f16:
      return quantize_blocks(static_cast<const base::Float16*>(source), blocks, codes, absmax);
    default:
      SNUG_CHECK(false, "no NF4 from {}", base::name_of(from));
  }
}

#else

bool runs_avx2() { return false; }

void quantize_blocks_avx2(base::DType from, const void* source, int64_t blocks, uint8_t* codes,
                          float* absmax) {
  quantize_blocks_portably(from, source, blocks, codes, absmax);
}

#endif

}  // namespace snug::formats
