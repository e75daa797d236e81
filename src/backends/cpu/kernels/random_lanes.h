// The random bits of backends/random_bits.h, sixteen philox calls at a time, for kernel files only:
// lane l of a block's vectors is the call of column or element l of the block.
#pragma once

#include "backends/cpu/kernels/vector.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace snug::backends::cpu::SNUG_ISA {

struct PhiloxLanes {
  Uint16Lanes word[4];
};

// Upper and lower halves of the 32 x 32 bit products with one multiplier.
SNUG_INLINE void multiply(Uint16Lanes x, uint32_t multiplier, Uint16Lanes* high, Uint16Lanes* low) {
  using Wide8Lanes = uint64_t __attribute__((vector_size(64)));
  const Wide8Lanes pairs = reinterpret_cast<Wide8Lanes>(x);
#if defined(__AVX512F__)
  // The compiler's own choice would be the three times slower full 64-bit product. Masked with all
  // lanes on, since gcc 12 warns of the plain form's undefined merge.
  const __m512i factor = _mm512_set1_epi64(multiplier);
  const auto even = reinterpret_cast<Wide8Lanes>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(pairs), factor));
  const auto odd = reinterpret_cast<Wide8Lanes>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(pairs >> 32), factor));
#else
  const Wide8Lanes even = (pairs & 0xffffffffU) * uint64_t{multiplier};
  const Wide8Lanes odd = (pairs >> 32) * uint64_t{multiplier};
#endif
  *high = reinterpret_cast<Uint16Lanes>((even >> 32) | (odd & 0xffffffff00000000U));
  *low = reinterpret_cast<Uint16Lanes>((even & 0xffffffffU) | (odd << 32));
}

// philox({counter[0] + lane, counter[1], counter[2], 0}, key) in every lane.
SNUG_INLINE PhiloxLanes philox(const uint32_t counter[3], const uint32_t key[2]) {
  constexpr Uint16Lanes kLane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  PhiloxLanes c = {
      {kLane + counter[0], Uint16Lanes{} + counter[1], Uint16Lanes{} + counter[2], Uint16Lanes{}}};
  uint32_t key0 = key[0];
  uint32_t key1 = key[1];
  for (int round = 0; round < 10; ++round) {
    Uint16Lanes high0;
    Uint16Lanes low0;
    Uint16Lanes high2;
    Uint16Lanes low2;
    multiply(c.word[0], 0xD2511F53U, &high0, &low0);
    multiply(c.word[2], 0xCD9E8D57U, &high2, &low2);
    c = {{high2 ^ c.word[1] ^ key0, low2, high0 ^ c.word[3] ^ key1, low0}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return c;
}

// The 16 bits that round elements block * 128 ... of one plane: bits[k] for elements k * 16 ...
struct RoundingLanes {
  Uint16Lanes bits[8];
};

SNUG_INLINE RoundingLanes rounding_lanes(const uint32_t key[2], uint32_t plane, int64_t block) {
  const uint64_t call = static_cast<uint64_t>(block) * 16;
  const uint32_t counter[3] = {static_cast<uint32_t>(call), static_cast<uint32_t>(call >> 32),
                               plane};
  const PhiloxLanes words = philox(counter, key);
  RoundingLanes lanes;
  for (int k = 0; k < 4; ++k) {
    lanes.bits[2 * k] = words.word[k] & 0xffffU;
    lanes.bits[2 * k + 1] = words.word[k] >> 16;
  }
  return lanes;
}

// Adds the bits below the upper half of each value, whose upper half is then the bf16. What is not
// finite rounds to nearest.
SNUG_INLINE Half16Lanes round_stochastically(Float16Lanes x, Uint16Lanes bits) {
  const Uint16Lanes raw = reinterpret_cast<Uint16Lanes>(x);
  const Uint16Lanes finite =
      reinterpret_cast<Uint16Lanes>((raw & 0x7f800000U) != Uint16Lanes{} + 0x7f800000U);
  const Uint16Lanes quiet = (raw >> 16) | (reinterpret_cast<Uint16Lanes>(x != x) & 0x40U);
  return __builtin_convertvector((((raw + bits) >> 16) & finite) | (quiet & ~finite), Half16Lanes);
}

}  // namespace snug::backends::cpu::SNUG_ISA
