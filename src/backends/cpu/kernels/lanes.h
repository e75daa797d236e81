// Loops over n elements, sixteen at a time, for kernel files only: the body is written once, and
// runs with Whole{} for full vectors and with Part{count} for the remainder.
#pragma once

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {

struct Whole {};
struct Part {
  int64_t count;
};

template <typename Element>
SNUG_INLINE Float16Lanes load(const Element* x, Whole) {
  return load(x);
}
// Missing lanes are 0.
template <typename Element>
SNUG_INLINE Float16Lanes load(const Element* x, Part part) {
  return load_partial(x, part.count, 0.0F);
}

template <typename Element>
SNUG_INLINE void store(Element* out, Float16Lanes x, Whole) {
  store(out, x);
}
template <typename Element>
SNUG_INLINE void store(Element* out, Float16Lanes x, Part part) {
  store_partial(out, x, part.count);
}

// Compiles to a vector square root instruction with -fno-math-errno.
SNUG_INLINE Float16Lanes square_root(Float16Lanes x) {
  float lane[kLanes];
  store(lane, x);
  for (int64_t i = 0; i < kLanes; ++i) lane[i] = __builtin_sqrtf(lane[i]);
  return load(lane);
}

// 1 / x within 2 units in the last place; where the instruction set has an estimate to refine, in a
// quarter of a division's time. 0 for finite x beyond 2^126.
SNUG_INLINE Float16Lanes reciprocal(Float16Lanes x) {
#if defined(__AVX512F__)
  const auto estimate =
      lanes_as<Float16Lanes>(_mm512_maskz_rcp14_ps(0xffff, reinterpret_cast<__m512>(x)));
  return estimate + estimate * (1.0F - x * estimate);
#else
  return 1.0F / x;
#endif
}

// Calls body(i, Whole{} or Part{n - i}) for i = 0, 16, 32, ...
template <typename Body>
SNUG_INLINE void for_each_lanes(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Whole{});
  if (i < n) body(i, Part{n - i});
}

}  // namespace snug::backends::cpu::SNUG_ISA
