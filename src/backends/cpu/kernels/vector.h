// Sixteen floats as one value, for kernel files only: one, two or four registers, depending on the
// instruction set. Everything is static and in the namespace SNUG_ISA, so that no copy for one
// instruction set can be linked into another. Remainders are handled by partial loads and stores,
// which give missing lanes a chosen value.
#pragma once

#include <cstdint>
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif

#include "backends/cpu/kernels/element.h"
#include "backends/cpu/kernels/register_lanes.h"

namespace snug::backends::cpu::SNUG_ISA {

#if defined(__AVX512F__)
template <typename Element>
using Lanes = WholeOf<Element>;
#else
template <typename Element>
using Lanes = LanesOf<Element>;
#endif
using Float16Lanes = Lanes<float>;
using Int16Lanes = Lanes<int32_t>;
using Uint16Lanes = Lanes<uint32_t>;
using Half16Lanes = WholeOf<uint16_t>;
using Register = RegisterOf<float>;

SNUG_INLINE int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }
SNUG_INLINE int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

// The same bits as lanes of another type.
template <typename To, typename From>
SNUG_INLINE To lanes_as(From x) {
  return __builtin_bit_cast(To, x);
}
template <typename To, typename From>
SNUG_INLINE To lanes_as(LanesOf<From> x) {
  if constexpr (std::is_class_v<To>)
    return cast_lanes<std::remove_cvref_t<decltype(To{}[0])>>(x);
  else
    return __builtin_bit_cast(To, x);
}

// The lanes as compiler vectors, which the compiler can shuffle.
SNUG_INLINE WholeOf<float> whole(Float16Lanes x) { return lanes_as<WholeOf<float>>(x); }

SNUG_INLINE Register load_register(const void* x) {
  Register v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

SNUG_INLINE Float16Lanes splat(float x) { return Float16Lanes{} + x; }

SNUG_INLINE Float16Lanes load(const float* x) {
#if defined(__AVX512F__)
  Float16Lanes v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
#else
  return load_lanes(x);
#endif
}

// gcc 12 would widen in two halves, although one instruction suffices.
SNUG_INLINE Uint16Lanes widen(Half16Lanes half) {
#if defined(__AVX512F__)
  return lanes_as<Uint16Lanes>(
      _mm512_maskz_cvtepu16_epi32(0xffff, reinterpret_cast<__m256i>(half)));
#else
  return widened(half);
#endif
}

SNUG_INLINE Half16Lanes load_half(const uint16_t* x) {
  Half16Lanes half;
  __builtin_memcpy(&half, x, sizeof half);
  return half;
}

// Loads stored bf16.
SNUG_INLINE Float16Lanes load(const uint16_t* x) {
#if defined(__AVX512F__)
  return lanes_as<Float16Lanes>(widen(load_half(x)) << 16);
#else
  Float16Lanes v;
  for (int64_t i = 0; i < kRegisters; ++i) {
    RegisterOf<uint16_t> half;
    __builtin_memcpy(&half, x + i * kRegisterLanes, sizeof half);
    v.part[i] =
        __builtin_bit_cast(Register, __builtin_convertvector(half, RegisterOf<uint32_t>) << 16);
  }
  return v;
#endif
}

// Converts stored fp16 to fp32; without an instruction for it, in the same way as base/dtype.h.
SNUG_INLINE Float16Lanes widen_fp16(Half16Lanes half) {
#if defined(__AVX512F__)
  return lanes_as<Float16Lanes>(_mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(half)));
#elif defined(__F16C__)
  __m128i halves[2];
  __builtin_memcpy(halves, &half, sizeof half);
  Float16Lanes v;
  for (int64_t i = 0; i < kRegisters; ++i)
    v.part[i] = __builtin_bit_cast(Register, _mm256_cvtph_ps(halves[i]));
  return v;
#else
  const Uint16Lanes bits = widen(half);
  const Uint16Lanes sign = (bits & 0x8000U) << 16;
  const Uint16Lanes magnitude = (bits & 0x7fffU) << 13;
  const Uint16Lanes smallest_normal = Uint16Lanes{} + (113U << 23);
  const Float16Lanes subnormal =
      lanes_as<Float16Lanes>(magnitude + smallest_normal) - lanes_as<Float16Lanes>(smallest_normal);
  Uint16Lanes result = magnitude + (112U << 23);
  result = select(magnitude >= (31U << 23), magnitude | 0x7f800000U, result);
  result = select(magnitude < (1U << 23), lanes_as<Uint16Lanes>(subnormal), result);
  return lanes_as<Float16Lanes>(sign | result);
#endif
}

SNUG_INLINE Float16Lanes load(const Fp16* x) {
  Half16Lanes half;
  __builtin_memcpy(&half, x, sizeof half);
  return widen_fp16(half);
}

// Loads numbers of 8 bits with a sign.
SNUG_INLINE Float16Lanes load(const int8_t* x) {
#if defined(__AVX512F__)
  __m128i bytes;
  __builtin_memcpy(&bytes, x, sizeof bytes);
  return lanes_as<Float16Lanes>(
      _mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepi8_epi32(0xffff, bytes)));
#else
  Float16Lanes v;
  for (int64_t i = 0; i < kRegisters; ++i) {
#if defined(__AVX2__)
    int64_t bytes;
    __builtin_memcpy(&bytes, x + i * kRegisterLanes, sizeof bytes);
    v.part[i] = __builtin_bit_cast(
        Register, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes))));
#else
    for (int64_t j = 0; j < kRegisterLanes; ++j)
      v.part[i][j] = static_cast<float>(x[i * kRegisterLanes + j]);
#endif
  }
  return v;
#endif
}

// Loads the first n < 16 elements; missing lanes are `absent`.
SNUG_INLINE Float16Lanes load_partial(const float* x, int64_t n, float absent) {
  Float16Lanes v = splat(absent);
  __builtin_memcpy(&v, x, static_cast<uint64_t>(n) * sizeof(float));
  return v;
}

SNUG_INLINE Float16Lanes load_partial(const uint16_t* x, int64_t n, float absent) {
  float wide[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    const uint32_t bits = i < n ? static_cast<uint32_t>(x[i]) << 16 : 0;
    wide[i] = i < n ? __builtin_bit_cast(float, bits) : absent;
  }
  return load(wide);
}

SNUG_INLINE Float16Lanes load_partial(const Fp16* x, int64_t n, float absent) {
  Half16Lanes half = {};
  __builtin_memcpy(&half, x, static_cast<uint64_t>(n) * sizeof(Fp16));
  const Float16Lanes present = widen_fp16(half);
  Float16Lanes v = splat(absent);
  __builtin_memcpy(&v, &present, static_cast<uint64_t>(n) * sizeof(float));
  return v;
}

SNUG_INLINE Float16Lanes load_partial(const int8_t* x, int64_t n, float absent) {
  float wide[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) wide[i] = i < n ? static_cast<float>(x[i]) : absent;
  return load(wide);
}

// Rounds to fp16, to nearest with ties to even; values that are too large become infinite, NaN
// stays NaN.
SNUG_INLINE Half16Lanes to_fp16(Float16Lanes x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Half16Lanes>(_mm512_maskz_cvtps_ph(
      0xffff, reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  __m128i halves[2];
  for (int64_t i = 0; i < kRegisters; ++i)
    halves[i] = _mm256_cvtps_ph(__builtin_bit_cast(__m256, x.part[i]),
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  Half16Lanes half;
  __builtin_memcpy(&half, halves, sizeof half);
  return half;
#else
  const Uint16Lanes bits = lanes_as<Uint16Lanes>(x);
  const Uint16Lanes sign = (bits >> 16) & 0x8000U;
  const Uint16Lanes magnitude = bits & 0x7fffffffU;
  const Uint16Lanes shifted =
      lanes_as<Uint16Lanes>(lanes_as<Float16Lanes>(magnitude) + 0.5F) - 0x3f000000U;
  Uint16Lanes result = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
  result = select(magnitude < 0x38800000U, shifted, result);
  result = select(magnitude >= 0x477ff000U, Uint16Lanes{} + 0x7c00U, result);
  result = select(magnitude > 0x7f800000U, Uint16Lanes{} + 0x7e00U, result);
  return narrowed<Half16Lanes>(sign | result);
#endif
}

// The lower halves of all lanes.
SNUG_INLINE Half16Lanes narrow_halves(Uint16Lanes lanes) {
#if defined(__AVX512F__)
  return __builtin_convertvector(lanes, Half16Lanes);
#else
  return narrowed<Half16Lanes>(lanes);
#endif
}

// Rounds to bf16, to nearest with ties to even. NaN stays NaN.
SNUG_INLINE Half16Lanes to_bf16(Float16Lanes x) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<Half16Lanes>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x)));
#else
  const Uint16Lanes bits = lanes_as<Uint16Lanes>(x);
  const Uint16Lanes rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const Uint16Lanes quiet = (bits >> 16) | 0x40U;
  const Uint16Lanes is_nan = lanes_as<Uint16Lanes>(x != x);
  return narrow_halves((rounded & ~is_nan) | (quiet & is_nan));
#endif
}

SNUG_INLINE void store(float* out, Float16Lanes x) {
#if defined(__AVX512F__)
  __builtin_memcpy(out, &x, sizeof x);
#else
  store_lanes(out, x);
#endif
}

SNUG_INLINE void store(uint16_t* out, Float16Lanes x) {
  const Half16Lanes half = to_bf16(x);
  __builtin_memcpy(out, &half, sizeof half);
}

SNUG_INLINE void store(Fp16* out, Float16Lanes x) {
  const Half16Lanes half = to_fp16(x);
  __builtin_memcpy(out, &half, sizeof half);
}

SNUG_INLINE void store_partial(float* out, Float16Lanes x, int64_t n) {
  __builtin_memcpy(out, &x, static_cast<uint64_t>(n) * sizeof(float));
}

SNUG_INLINE void store_partial(uint16_t* out, Float16Lanes x, int64_t n) {
  const Half16Lanes half = to_bf16(x);
  __builtin_memcpy(out, &half, static_cast<uint64_t>(n) * sizeof(uint16_t));
}

SNUG_INLINE void store_partial(Fp16* out, Float16Lanes x, int64_t n) {
  const Half16Lanes half = to_fp16(x);
  __builtin_memcpy(out, &half, static_cast<uint64_t>(n) * sizeof(Fp16));
}

#if defined(__AVX512F__)
SNUG_INLINE Float16Lanes select(Int16Lanes mask, Float16Lanes yes, Float16Lanes no) {
  return mask ? yes : no;
}

// The larger value in each lane; b if either is NaN. Uses the intrinsic, since gcc 12 compiles the
// comparison to two instructions.
SNUG_INLINE Float16Lanes maximum(Float16Lanes a, Float16Lanes b) {
  return lanes_as<Float16Lanes>(
      _mm512_maskz_max_ps(0xffff, lanes_as<__m512>(a), lanes_as<__m512>(b)));
}
SNUG_INLINE Float16Lanes minimum(Float16Lanes a, Float16Lanes b) {
  return lanes_as<Float16Lanes>(
      _mm512_maskz_min_ps(0xffff, lanes_as<__m512>(a), lanes_as<__m512>(b)));
}
#endif

// a * b + c, rounded once where the instruction set can, even in files that otherwise do not
// contract.
SNUG_INLINE Float16Lanes multiply_add(Float16Lanes a, Float16Lanes b, Float16Lanes c) {
#if defined(__AVX512F__)
  return lanes_as<Float16Lanes>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#else
  return a * b + c;
#endif
}

#if defined(__AVX512BF16__)
// sum + a * b for pairs of bf16. clang 16 does not terminate where the bf16 vectors of the
// intrinsic are split or joined, since its optimizer computes the cost of that forever. So for
// clang the instruction is used directly, with integer operands.
SNUG_INLINE Float16Lanes add_pair_products(Float16Lanes sum, __m512i a, __m512i b) {
#if defined(__clang__)
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  return lanes_as<Float16Lanes>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
#endif
}
#endif

using Float8Lanes = float __attribute__((vector_size(32)));
using Float4Lanes = float __attribute__((vector_size(16)));

SNUG_INLINE void take_halves(Float16Lanes x, Float8Lanes (&half)[2]) {
#if defined(__AVX__) && !defined(__AVX512F__)
  half[0] = x.part[0];
  half[1] = x.part[1];
#else
  __builtin_memcpy(half, &x, sizeof x);
#endif
}

// Lanes are added as a tree, in the same order for every instruction set.
SNUG_INLINE float reduce_add(Float16Lanes x) {
  Float8Lanes half[2];
  take_halves(x, half);
  const Float8Lanes eight = half[0] + half[1];
  const Float4Lanes four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                           __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const Float4Lanes two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
  return two[0] + two[1];
}

// If a lane is NaN, the result may be NaN or the largest other value.
SNUG_INLINE float reduce_max(Float16Lanes x) {
  Float8Lanes half[2];
  take_halves(x, half);
  const Float8Lanes eight = half[0] > half[1] ? half[0] : half[1];
  const Float4Lanes left = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
  const Float4Lanes right = __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const Float4Lanes four = left > right ? left : right;
  const Float4Lanes turned = __builtin_shufflevector(four, four, 2, 3, 0, 1);
  const Float4Lanes two = four > turned ? four : turned;
  return two[0] > two[1] ? two[0] : two[1];
}

// p * 2^n, given shifted = 1.5 * 2^23 + n, for results that are normal; NaN gives NaN.
SNUG_INLINE Float16Lanes times_power_of_two(Float16Lanes p, Float16Lanes shifted) {
#if defined(__AVX512F__)
  const Float16Lanes n = shifted - 12582912.0F;
  return lanes_as<Float16Lanes>(
      _mm512_maskz_scalef_ps(0xffff, reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(n)));
#else
  const Int16Lanes exponent = lanes_as<Int16Lanes>(shifted) << 23;
  const auto scaled = lanes_as<Float16Lanes>(lanes_as<Int16Lanes>(p) + exponent);
  return select(p == p, scaled, p);  // without this the bits of a NaN would change the exponent
#endif
}

// exp(x) within 2 units in the last place. x = n ln 2 + r with |r| <= ln 2 / 2, where ln 2 is split
// in two so that r is exact; e^r is its Taylor series up to r^7 (error 5e-9 at the ends). x is
// clamped, so results are 0 below -87.33 and a finite value close to the largest one above 88.37;
// NaN gives NaN.
SNUG_INLINE Float16Lanes exp(Float16Lanes x) {
  const Float16Lanes clamped = maximum(splat(-87.33F), minimum(splat(88.37F), x));
  const Float16Lanes shifted = clamped * 1.44269504F + 12582912.0F;  // rounds: 1.5 * 2^23 is added
  const Float16Lanes n = shifted - 12582912.0F;
  const Float16Lanes r = clamped - n * 0.693359375F + n * 2.12194440e-4F;
  Float16Lanes p = splat(1.0F / 5040.0F);
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return select(x < splat(-87.33F), splat(0.0F), times_power_of_two(p, shifted));
}

}  // namespace snug::backends::cpu::SNUG_ISA
