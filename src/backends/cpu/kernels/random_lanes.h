// The random bits of backends/formulas/random_bits.h, sixteen philox calls at a time, for kernel
// files only: lane l of a block's vectors is the call for column or element l of the block.
#pragma once

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {

struct PhiloxLanes {
  Uint16Lanes word[4];
};

// Eight 64-bit lanes, of which the calculations only use the lower 32 bits.
using Wide8Lanes = uint64_t __attribute__((vector_size(64)));

// The 64-bit products of the lower 32 bits.
SNUG_INLINE Wide8Lanes multiply_lower(Wide8Lanes x, uint32_t multiplier) {
#if defined(__AVX512F__)
  // The compiler would choose the full 64-bit product, which is three times slower. The masked form
  // with all lanes on is used because gcc 12 warns about an undefined operand of the plain form.
  return reinterpret_cast<Wide8Lanes>(_mm512_maskz_mul_epu32(
      0xff, reinterpret_cast<__m512i>(x), _mm512_set1_epi64(static_cast<int64_t>(multiplier))));
#else
  return (x & 0xffffffffU) * uint64_t{multiplier};
#endif
}

// philox({counter[0] + first lane, ...}) for every second lane, with the words in the lower halves.
struct PhiloxWide {
  Wide8Lanes word[4];
};

SNUG_INLINE PhiloxWide philox_wide(const uint32_t counter[3], const uint32_t key[2],
                                   Wide8Lanes lane) {
  PhiloxWide c = {
      {lane + counter[0], Wide8Lanes{} + counter[1], Wide8Lanes{} + counter[2], Wide8Lanes{}}};
  uint32_t key0 = key[0];
  uint32_t key1 = key[1];
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const Wide8Lanes product0 = multiply_lower(c.word[0], 0xD2511F53U);
    const Wide8Lanes product2 = multiply_lower(c.word[2], 0xCD9E8D57U);
    c = {{(product2 >> 32) ^ c.word[1] ^ key0, product2, (product0 >> 32) ^ c.word[3] ^ key1,
          product0}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return c;
}

// philox({counter[0] + lane, counter[1], counter[2], 0}, key) for every lane.
SNUG_INLINE PhiloxLanes philox(const uint32_t counter[3], const uint32_t key[2]) {
  constexpr Wide8Lanes kEven = {0, 2, 4, 6, 8, 10, 12, 14};
  const PhiloxWide even = philox_wide(counter, key, kEven);
  const PhiloxWide odd = philox_wide(counter, key, kEven + 1);
  PhiloxLanes c;
  for (int i = 0; i < 4; ++i)
    c.word[i] = lanes_as<Uint16Lanes>((even.word[i] & 0xffffffffU) | (odd.word[i] << 32));
  return c;
}

// The 16-bit random numbers for rounding elements block * 128 ... of one plane: bits[k] is for
// elements k * 16 ...
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

// Adds the random bits to the lower half of each value and returns the upper half as bf16. Values
// that are not finite are rounded to nearest.
SNUG_INLINE Half16Lanes round_stochastically(Float16Lanes x, Uint16Lanes bits) {
  const Uint16Lanes raw = lanes_as<Uint16Lanes>(x);
  const Uint16Lanes finite =
      lanes_as<Uint16Lanes>((raw & 0x7f800000U) != Uint16Lanes{} + 0x7f800000U);
  const Uint16Lanes quiet = (raw >> 16) | (lanes_as<Uint16Lanes>(x != x) & 0x40U);
  return narrow_halves((((raw + bits) >> 16) & finite) | (quiet & ~finite));
}

}  // namespace snug::backends::cpu::SNUG_ISA
