// Scales of NF4 blocks, sixteen at a time; for kernel files with AVX-512 only. Must be compiled
// without contraction: a nested scale is a product and a sum, each rounded.
#pragma once

#include "backends/cpu/kernels/vector.h"
#include "backends/cpu/product/kernels/nf4.h"

#if defined(__AVX512F__)

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t kNestedBlocks = 256;

// The scales of at most sixteen blocks, starting at `first`, which must lie in at most two nested
// blocks. Lanes beyond `count` are undefined.
SNUG_INLINE Float16Lanes block_scales(const Nf4Weight& weight, int64_t first, int64_t count) {
  const auto present = static_cast<__mmask16>(0xffffU >> (kLanes - count));
  if (weight.absmax != nullptr)
    return lanes_as<Float16Lanes>(_mm512_maskz_loadu_ps(present, weight.absmax + first));
  const __m512i codes = _mm512_maskz_cvtepu8_epi32(
      present, _mm_maskz_loadu_epi8(present, weight.nested_codes + first));
  const __m512 mapped =
      _mm512_mask_i32gather_ps(_mm512_setzero_ps(), present, codes, weight.nested_map, 4);
  const int64_t left = kNestedBlocks - first % kNestedBlocks;  // blocks in the first nested block
  const auto later = static_cast<__mmask16>(left < kLanes ? 0xffffU << left : 0);
  const __m512 absmax = _mm512_mask_blend_ps(
      later, _mm512_set1_ps(weight.nested_absmax[first / kNestedBlocks]),
      _mm512_set1_ps(weight.nested_absmax[(first + count - 1) / kNestedBlocks]));
  const Float16Lanes product = lanes_as<Float16Lanes>(mapped) * lanes_as<Float16Lanes>(absmax);
  return product + splat(weight.nested_offset);
}

// Writes the scales of `count` blocks, starting at `first`. Values are looked up one by one, which
// takes half the time of instructions that gather them.
[[maybe_unused]] static void write_scales(const Nf4Weight& weight, int64_t first, int64_t count,
                                          float* scales) {
  if (weight.absmax != nullptr) {
    __builtin_memcpy(scales, weight.absmax + first, static_cast<uint64_t>(count) * sizeof(float));
    return;
  }
  const uint8_t* codes = weight.nested_codes + first;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, weight.nested_map + codes[i], sizeof bits);
    // Otherwise gcc 12 puts sixteen together in a vector, one by one.
    __asm__("" : "+r"(bits));
    __builtin_memcpy(scales + i, &bits, sizeof bits);
  }
  for (int64_t begin = 0; begin < count;) {
    const int64_t nested = (first + begin) / kNestedBlocks;
    const int64_t end = smaller_of(count, (nested + 1) * kNestedBlocks - first);
    const __m512 absmax = _mm512_set1_ps(weight.nested_absmax[nested]);
    const __m512 offset = _mm512_set1_ps(weight.nested_offset);
    for (int64_t i = begin; i < end; i += kLanes) {
      const auto present =
          static_cast<__mmask16>(end - i >= kLanes ? 0xffffU : 0xffffU >> (kLanes - (end - i)));
      const __m512 mapped = _mm512_maskz_loadu_ps(present, scales + i);
      _mm512_mask_storeu_ps(scales + i, present,
                            _mm512_add_ps(_mm512_mul_ps(mapped, absmax), offset));
    }
    begin = end;
  }
}

}  // namespace snug::backends::cpu::SNUG_ISA

#endif
