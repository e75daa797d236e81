// Sixteen floats as one value, for kernel files only: compiled to one, two or four registers by the
// instruction set. Everything is static and lives in the namespace SNUG_ISA, so that no copy made
// for one instruction set can be linked into another. Tails are handled by partial loads and
// stores, which give absent lanes a chosen value.
#pragma once

#include <cstdint>
#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t kLanes = 16;

using Float16Lanes = float __attribute__((vector_size(64)));
using Int16Lanes = int32_t __attribute__((vector_size(64)));
using Uint16Lanes = uint32_t __attribute__((vector_size(64)));
using Half16Lanes = uint16_t __attribute__((vector_size(32)));

#define SNUG_INLINE static inline __attribute__((always_inline))

// One register of lanes. Where it holds fewer than sixteen, gcc 12 makes scalars of comparisons and
// choices of sixteen lanes, and stores them by way of the stack; so those are written for a
// register at a time.
#if defined(__AVX512F__)
constexpr int64_t kRegisterLanes = 16;
#elif defined(__AVX__)
constexpr int64_t kRegisterLanes = 8;
#else
constexpr int64_t kRegisterLanes = 4;
#endif
constexpr int64_t kRegisters = kLanes / kRegisterLanes;
template <typename Element>
struct RegisterType {
  typedef Element Type __attribute__((vector_size(kRegisterLanes * 4)));
};
template <typename Element>
using RegisterOf = typename RegisterType<Element>::Type;
using Register = RegisterOf<float>;

SNUG_INLINE Register load_register(const void* x) {
  Register v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

SNUG_INLINE Float16Lanes splat(float x) { return Float16Lanes{} + x; }

SNUG_INLINE Float16Lanes load(const float* x) {
  Float16Lanes v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

// gcc 12 widens in two halves where one instruction does.
SNUG_INLINE Uint16Lanes widen(Half16Lanes half) {
#if defined(__AVX512F__)
  return reinterpret_cast<Uint16Lanes>(
      _mm512_maskz_cvtepu16_epi32(0xffff, reinterpret_cast<__m256i>(half)));
#else
  return __builtin_convertvector(half, Uint16Lanes);
#endif
}

SNUG_INLINE Half16Lanes load_half(const uint16_t* x) {
  Half16Lanes half;
  __builtin_memcpy(&half, x, sizeof half);
  return half;
}

// bf16 as stored.
SNUG_INLINE Float16Lanes load(const uint16_t* x) {
  return reinterpret_cast<Float16Lanes>(widen(load_half(x)) << 16);
}

// fp16 as stored, to fp32. Without an instruction for it as base/dtype.h does it.
SNUG_INLINE Float16Lanes widen_fp16(Half16Lanes half) {
#if defined(__AVX512F__)
  return reinterpret_cast<Float16Lanes>(
      _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(half)));
#elif defined(__F16C__)
  __m128i halves[2];
  __builtin_memcpy(halves, &half, sizeof half);
  const __m256 wide[2] = {_mm256_cvtph_ps(halves[0]), _mm256_cvtph_ps(halves[1])};
  Float16Lanes v;
  __builtin_memcpy(&v, wide, sizeof v);
  return v;
#else
  const Uint16Lanes bits = widen(half);
  const Uint16Lanes sign = (bits & 0x8000U) << 16;
  const Uint16Lanes magnitude = (bits & 0x7fffU) << 13;
  const Uint16Lanes smallest_normal = Uint16Lanes{} + (113U << 23);
  const Float16Lanes subnormal = reinterpret_cast<Float16Lanes>(magnitude + smallest_normal) -
                                 reinterpret_cast<Float16Lanes>(smallest_normal);
  Uint16Lanes result = magnitude + (112U << 23);
  result = magnitude >= (31U << 23) ? magnitude | 0x7f800000U : result;
  result = magnitude < (1U << 23) ? reinterpret_cast<Uint16Lanes>(subnormal) : result;
  return reinterpret_cast<Float16Lanes>(sign | result);
#endif
}

SNUG_INLINE Float16Lanes load(const Fp16* x) {
  Half16Lanes half;
  __builtin_memcpy(&half, x, sizeof half);
  return widen_fp16(half);
}

// The first n < 16 elements; absent lanes are `absent`.
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

// Rounds to fp16, to nearest with ties to even; what is too large becomes infinite, NaN stays NaN.
SNUG_INLINE Half16Lanes to_fp16(Float16Lanes x) {
#if defined(__AVX512F__)
  return reinterpret_cast<Half16Lanes>(_mm512_maskz_cvtps_ph(
      0xffff, reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  __m256 wide[2];
  __builtin_memcpy(wide, &x, sizeof x);
  const __m128i halves[2] = {
      _mm256_cvtps_ph(wide[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
      _mm256_cvtps_ph(wide[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  Half16Lanes half;
  __builtin_memcpy(&half, halves, sizeof half);
  return half;
#else
  const Uint16Lanes bits = reinterpret_cast<Uint16Lanes>(x);
  const Uint16Lanes sign = (bits >> 16) & 0x8000U;
  const Uint16Lanes magnitude = bits & 0x7fffffffU;
  const Uint16Lanes shifted =
      reinterpret_cast<Uint16Lanes>(reinterpret_cast<Float16Lanes>(magnitude) + 0.5F) - 0x3f000000U;
  Uint16Lanes result = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
  result = magnitude < 0x38800000U ? shifted : result;
  result = magnitude >= 0x477ff000U ? Uint16Lanes{} + 0x7c00U : result;
  result = magnitude > 0x7f800000U ? Uint16Lanes{} + 0x7e00U : result;
  return __builtin_convertvector(sign | result, Half16Lanes);
#endif
}

// Rounds to bf16, to nearest with ties to even. NaN stays NaN.
SNUG_INLINE Half16Lanes to_bf16(Float16Lanes x) {
#if defined(__AVX512BF16__)
  return reinterpret_cast<Half16Lanes>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x)));
#else
  const Uint16Lanes bits = reinterpret_cast<Uint16Lanes>(x);
  const Uint16Lanes rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const Uint16Lanes quiet = (bits >> 16) | 0x40U;
  const Uint16Lanes is_nan = reinterpret_cast<Uint16Lanes>(x != x);
  return __builtin_convertvector((rounded & ~is_nan) | (quiet & is_nan), Half16Lanes);
#endif
}

SNUG_INLINE void store(float* out, Float16Lanes x) {
  Register part[kRegisters];
  __builtin_memcpy(part, &x, sizeof x);
  for (int64_t i = 0; i < kRegisters; ++i)
    __builtin_memcpy(out + i * kRegisterLanes, &part[i], sizeof(Register));
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

// operation(a, b) for a register of lanes at a time; Element is that of the lanes.
template <typename Result, typename Element, typename Lanes, typename Operation>
SNUG_INLINE Result by_registers(Lanes a, Lanes b, Operation operation) {
  RegisterOf<Element> of_a[kRegisters];
  RegisterOf<Element> of_b[kRegisters];
  __builtin_memcpy(of_a, &a, sizeof a);
  __builtin_memcpy(of_b, &b, sizeof b);
  decltype(operation(of_a[0], of_b[0])) made[kRegisters];
  for (int64_t i = 0; i < kRegisters; ++i) made[i] = operation(of_a[i], of_b[i]);
  Result result;
  __builtin_memcpy(&result, made, sizeof result);
  return result;
}

template <typename Element, typename Lanes>
SNUG_INLINE Int16Lanes less_lanes(Lanes a, Lanes b) {
#if defined(__AVX512F__)
  return a < b;
#else
  return by_registers<Int16Lanes, Element>(
      a, b, [](auto x, auto y) -> RegisterOf<int32_t> { return x < y; });
#endif
}
SNUG_INLINE Int16Lanes less(Float16Lanes a, Float16Lanes b) { return less_lanes<float>(a, b); }
SNUG_INLINE Int16Lanes less(Int16Lanes a, Int16Lanes b) { return less_lanes<int32_t>(a, b); }
SNUG_INLINE Int16Lanes less(Uint16Lanes a, Uint16Lanes b) { return less_lanes<uint32_t>(a, b); }

SNUG_INLINE Float16Lanes select(Int16Lanes mask, Float16Lanes yes, Float16Lanes no) {
#if defined(__AVX512F__)
  return mask ? yes : no;
#else
  RegisterOf<int32_t> of_mask[kRegisters];
  __builtin_memcpy(of_mask, &mask, sizeof mask);
  int64_t i = 0;
  return by_registers<Float16Lanes, float>(
      yes, no, [&](Register x, Register y) -> Register { return of_mask[i++] ? x : y; });
#endif
}

// Of each lane; b where one is NaN. gcc 12 makes two instructions of the comparison.
SNUG_INLINE Float16Lanes maximum(Float16Lanes a, Float16Lanes b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Float16Lanes>(
      _mm512_maskz_max_ps(0xffff, reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#else
  return by_registers<Float16Lanes, float>(
      a, b, [](Register x, Register y) -> Register { return x > y ? x : y; });
#endif
}
SNUG_INLINE Float16Lanes minimum(Float16Lanes a, Float16Lanes b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Float16Lanes>(
      _mm512_maskz_min_ps(0xffff, reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#else
  return by_registers<Float16Lanes, float>(
      a, b, [](Register x, Register y) -> Register { return x < y ? x : y; });
#endif
}

// a b + c, rounded once where the instruction set can: also in files that contract nothing else.
SNUG_INLINE Float16Lanes multiply_add(Float16Lanes a, Float16Lanes b, Float16Lanes c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Float16Lanes>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#else
  return a * b + c;
#endif
}

#if defined(__AVX512BF16__)
// sum + a b of pairs of bf16. clang 16 does not end where vectors of bf16, which the intrinsic
// takes, are spread or joined: its optimizer asks for the cost of that without end. So there the
// instruction takes integers.
SNUG_INLINE Float16Lanes add_pair_products(Float16Lanes sum, __m512i a, __m512i b) {
#if defined(__clang__)
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  return reinterpret_cast<Float16Lanes>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
#endif
}
#endif

using Float8Lanes = float __attribute__((vector_size(32)));
using Float4Lanes = float __attribute__((vector_size(16)));

// Lanes are added as a tree: the same order in every instruction set.
SNUG_INLINE float reduce_add(Float16Lanes x) {
  Float8Lanes half[2];
  __builtin_memcpy(half, &x, sizeof x);
  const Float8Lanes eight = half[0] + half[1];
  const Float4Lanes four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                           __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const Float4Lanes two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
  return two[0] + two[1];
}

// A NaN lane makes the result NaN or is passed over, whichever comes.
SNUG_INLINE float reduce_max(Float16Lanes x) {
  Float8Lanes half[2];
  __builtin_memcpy(half, &x, sizeof x);
  const Float8Lanes eight = half[0] > half[1] ? half[0] : half[1];
  const Float4Lanes left = __builtin_shufflevector(eight, eight, 0, 1, 2, 3);
  const Float4Lanes right = __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const Float4Lanes four = left > right ? left : right;
  const Float4Lanes turned = __builtin_shufflevector(four, four, 2, 3, 0, 1);
  const Float4Lanes two = four > turned ? four : turned;
  return two[0] > two[1] ? two[0] : two[1];
}

// exp(x) within 2 units in the last place. x = n ln 2 + r with |r| <= ln 2 / 2, the ln 2 split in
// two so that r is exact; e^r by its Taylor series to r^7 (error 5e-9 at the ends). Arguments below
// -87.33 give 0 and above 88.37 infinity's neighbour, by clamping n; NaN gives NaN.
SNUG_INLINE Float16Lanes exp(Float16Lanes x) {
  const Float16Lanes clamped = maximum(splat(-87.33F), minimum(splat(88.37F), x));
  const Float16Lanes shifted = clamped * 1.44269504F + 12582912.0F;  // 1.5 * 2^23 rounds to integer
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
  const Int16Lanes exponent = (reinterpret_cast<Int16Lanes>(shifted) << 23) + 0;
  const Float16Lanes scaled =
      reinterpret_cast<Float16Lanes>(reinterpret_cast<Int16Lanes>(p) + exponent);
  return select(less(x, splat(-87.33F)), splat(0.0F), scaled);
}

}  // namespace snug::backends::cpu::SNUG_ISA
