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

}  // namespace snug::backends::cpu::SNUG_ISA

#endif
