// Loads and stores of some of sixteen lanes with AVX-512 masks, for kernel files for AMX only.
#pragma once

#include "backends/cpu/kernels/vector.h"

#if defined(__AMX_BF16__)

namespace snug::backends::cpu::SNUG_ISA {

// A mask of the first n lanes: none for n <= 0, all for n >= 16.
SNUG_INLINE __mmask16 lanes_of(int64_t n) {
  if (n <= 0) return 0;
  return n >= kLanes ? __mmask16{0xffff} : static_cast<__mmask16>((1U << n) - 1U);
}

// Missing lanes are 0.
SNUG_INLINE Float16Lanes load_some(const float* x, __mmask16 lanes) {
  return lanes_as<Float16Lanes>(_mm512_maskz_loadu_ps(lanes, x));
}
SNUG_INLINE Float16Lanes load_some(const uint16_t* x, __mmask16 lanes) {
  const auto half = reinterpret_cast<Half16Lanes>(_mm256_maskz_loadu_epi16(lanes, x));
  return lanes_as<Float16Lanes>(widen(half) << 16);
}
SNUG_INLINE void store_some(float* out, Float16Lanes x, __mmask16 lanes) {
  _mm512_mask_storeu_ps(out, lanes, reinterpret_cast<__m512>(x));
}
SNUG_INLINE void store_some(uint16_t* out, Float16Lanes x, __mmask16 lanes) {
  _mm256_mask_storeu_epi16(out, lanes, reinterpret_cast<__m256i>(to_bf16(x)));
}

}  // namespace snug::backends::cpu::SNUG_ISA

#endif
