// Processes one block at a time: decodes the moments, advances them and steps the weights while it
// finds the largest magnitudes, then divides by these and encodes. In between, the block's moments
// take 2 KiB.
#include "backends/cpu/optimizer/kernels/optimizer_8bit.h"

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/random_lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kRounding = 128;  // elements in one block of random_bits.h

// a * b + c rounded once, whatever the compiler does with separate products and sums.
SNUG_INLINE Float16Lanes fused(Float16Lanes a, Float16Lanes b, Float16Lanes c) {
#if defined(__AVX512F__)
  return lanes_as<Float16Lanes>(_mm512_maskz_fmadd_ps(0xffff, reinterpret_cast<__m512>(a),
                                                      reinterpret_cast<__m512>(b),
                                                      reinterpret_cast<__m512>(c)));
#elif defined(__FMA__)
  Float16Lanes result;
  for (int64_t i = 0; i < kRegisters; ++i)
    result.part[i] =
        __builtin_bit_cast(Register, _mm256_fmadd_ps(__builtin_bit_cast(__m256, a.part[i]),
                                                     __builtin_bit_cast(__m256, b.part[i]),
                                                     __builtin_bit_cast(__m256, c.part[i])));
  return result;
#else
  float result[kLanes];
  for (int i = 0; i < kLanes; ++i) result[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return load(result);
#endif
}

SNUG_INLINE Float16Lanes magnitude(Float16Lanes x) {
  return lanes_as<Float16Lanes>(lanes_as<Uint16Lanes>(x) & 0x7fffffffU);
}

// table[index] in every lane.
SNUG_INLINE Float16Lanes gather(const float* table, Uint16Lanes index) {
#if defined(__AVX512F__)
  return lanes_as<Float16Lanes>(_mm512_mask_i32gather_ps(
      _mm512_setzero_ps(), 0xffff, reinterpret_cast<__m512i>(index), table, 4));
#else
  float found[kLanes];
  for (int i = 0; i < kLanes; ++i) found[i] = table[index[i]];
  return load(found);
#endif
}

// table[index] for a table of bytes, in every lane; reads up to three bytes beyond the entry.
SNUG_INLINE Uint16Lanes gather(const uint8_t* table, Uint16Lanes index) {
#if defined(__AVX512F__)
  return lanes_as<Uint16Lanes>(_mm512_mask_i32gather_epi32(
             _mm512_setzero_si512(), 0xffff, reinterpret_cast<__m512i>(index), table, 1)) &
         0xffU;
#else
  uint32_t found[kLanes];
  for (int i = 0; i < kLanes; ++i) found[i] = table[index[i]];
  return __builtin_bit_cast(Uint16Lanes, found);
#endif
}

using Codes16 = uint8_t __attribute__((vector_size(16)));

// Loads the first n of 16 codes; the others are 0.
SNUG_INLINE Uint16Lanes load_codes(const uint8_t* codes, int64_t n) {
  Codes16 bytes = {};
  if (n == kLanes)
    __builtin_memcpy(&bytes, codes, sizeof bytes);
  else
    __builtin_memcpy(&bytes, codes, static_cast<uint64_t>(n));
#if defined(__AVX512F__)
  return lanes_as<Uint16Lanes>(
      _mm512_maskz_cvtepu8_epi32(0xffff, reinterpret_cast<__m128i>(bytes)));
#else
  return widened(bytes);
#endif
}

SNUG_INLINE void store_codes(uint8_t* codes, Uint16Lanes lanes, int64_t n) {
#if defined(__AVX512F__)
  const auto bytes = reinterpret_cast<Codes16>(
      _mm512_maskz_cvtepi32_epi8(0xffff, reinterpret_cast<__m512i>(lanes)));
#else
  const auto bytes = narrowed<Codes16>(lanes & 0xffU);
#endif
  if (n == kLanes)
    __builtin_memcpy(codes, &bytes, sizeof bytes);
  else
    __builtin_memcpy(codes, &bytes, static_cast<uint64_t>(n));
}

// The codes of values that were divided by their block's scale. A comparison gives lanes of all
// ones, that is, -1.
SNUG_INLINE Uint16Lanes encode(const DynamicCodec& codec, Float16Lanes scaled) {
  const Uint16Lanes code = gather(codec.first, lanes_as<Uint16Lanes>(scaled) >> 16);
  return code - lanes_as<Uint16Lanes>(scaled >= gather(codec.threshold, code));
}

// Moves a code by one where its sign differs from its value's; map[127] is zero and counts as
// positive.
SNUG_INLINE Uint16Lanes with_sign_of(Float16Lanes value, Uint16Lanes code) {
  const Uint16Lanes negative = lanes_as<Uint16Lanes>(value) >> 31;
  const auto code_negative = lanes_as<Uint16Lanes>(code < 127U) & 1U;
  const Uint16Lanes towards = 0xffffffffU - 2 * lanes_as<Uint16Lanes>(value > 0.0F);
  return code + (towards & (0U - (negative ^ code_negative)));
}

SNUG_INLINE void store_weight(float* out, Float16Lanes x, Uint16Lanes, int64_t n) {
  store_partial(out, x, n);
}
SNUG_INLINE void store_weight(uint16_t* out, Float16Lanes x, Uint16Lanes bits, int64_t n) {
  const Half16Lanes half = round_stochastically(x, bits);
  __builtin_memcpy(out, &half, static_cast<uint64_t>(n) * sizeof(uint16_t));
}

// The moments of a block, and the largest magnitude so far in each lane.
struct BlockState {
  float moment[2][kBlock];
  Float16Lanes largest[2];
};

// Advances up to 16 elements of the block, starting at `i`, and writes their moments to `state`.
template <typename G, typename W>
SNUG_INLINE void advance(const AdamW8bitStep& step, const AdamW8bitRun& run, int64_t begin,
                         int64_t i, int64_t n, Uint16Lanes bits, BlockState& state) {
  const int64_t at = begin + i;
  W* weight = static_cast<W*>(run.weight) + at;
  // Missing lanes are infinite, so that they are treated as not finite and have no effect.
  const G* gradient = static_cast<const G*>(run.gradient) + at;
  const Float16Lanes raw =
      n == kLanes ? load(gradient) : load_partial(gradient, n, __builtin_inff());
  const Float16Lanes old = n == kLanes ? load(weight) : load_partial(weight, n, 0.0F);
  const auto finite = lanes_as<Uint16Lanes>((lanes_as<Uint16Lanes>(raw) & 0x7f800000U) !=
                                            Uint16Lanes{} + 0x7f800000U);
  const auto where_finite = [&](Float16Lanes x) {
    return lanes_as<Float16Lanes>(lanes_as<Uint16Lanes>(x) & finite);
  };
  const int64_t block = begin / kBlock;
  const Float16Lanes g = raw * step.factor;
  const auto decoded = [&](int k) {
    return gather(step.codec[k].map, load_codes(run.codes[k] + at, n)) * run.scales[k][block];
  };
  const Float16Lanes first_old = decoded(0);
  const Float16Lanes second_old = decoded(1);
  const Float16Lanes first = fused(g, splat(1.0F - step.beta1), first_old * step.beta1);
  const Float16Lanes second = fused(g * (1.0F - step.beta2), g, second_old * step.beta2);
  const Float16Lanes moments[2] = {where_finite(first), where_finite(second)};
  for (int k = 0; k < 2; ++k) {
    store(state.moment[k] + i, moments[k]);
    state.largest[k] = maximum(magnitude(moments[k]), state.largest[k]);
  }
  const Float16Lanes direction = first / (square_root(second) + step.of_step.epsilon);
  const Float16Lanes stepped =
      fused(splat(-step.of_step.step_size), direction, old) * step.of_step.keep;
  store_weight(weight, select(lanes_as<Int16Lanes>(finite), stepped, old), bits, n);
}

template <typename G, typename W>
void adamw_8bit(const AdamW8bitStep& step_of_all, const AdamW8bitRun& run) {
  const AdamW8bitStep step = step_of_all;  // a local copy, which the weights cannot alias
  for (int64_t begin = 0; begin < run.n; begin += kBlock) {
    const int64_t size = run.n - begin < kBlock ? run.n - begin : kBlock;
    BlockState state = {};
    RoundingLanes drawn = {};
    for (int64_t i = 0; i < size; i += kLanes) {
      if (sizeof(W) == sizeof(uint16_t) && i % kRounding == 0)
        drawn = rounding_lanes(step.key, 0, (run.first + begin + i) / kRounding);
      const int64_t n = size - i < kLanes ? size - i : kLanes;
      advance<G, W>(step, run, begin, i, n, drawn.bits[i % kRounding / kLanes], state);
    }
    for (int k = 0; k < 2; ++k) {
      const float scale = reduce_max(state.largest[k]);
      run.scales[k][begin / kBlock] = scale;
      for (int64_t i = 0; i < size; i += kLanes) {
        const Float16Lanes value = load(state.moment[k] + i);
        const Uint16Lanes code = encode(step.codec[k], value / scale);
        store_codes(run.codes[k] + begin + i, k == 0 ? with_sign_of(value, code) : code,
                    size - i < kLanes ? size - i : kLanes);
      }
    }
  }
}

}  // namespace

extern const Optimizer8bitKernels kOptimizer8bitKernels;
const Optimizer8bitKernels kOptimizer8bitKernels = {
    .adamw_8bit = {{adamw_8bit<float, float>, adamw_8bit<float, uint16_t>, nullptr},
                   {adamw_8bit<uint16_t, float>, adamw_8bit<uint16_t, uint16_t>, nullptr},
                   {nullptr, nullptr, nullptr}},
};

}  // namespace snug::backends::cpu::SNUG_ISA
