// A block at a time: decode, advance and step while the largest magnitudes are found, then divide
// by them and encode. The block's moments stay in 2 KiB in between.
#include "backends/cpu/kernels/optimizer_8bit.h"

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/random_lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr int64_t kBlock = 256;
constexpr int64_t kRounding = 128;  // elements of one block of random_bits.h

// a * b + c in one rounding, whatever the compiler makes of products and sums.
SNUG_INLINE Float16Lanes fused(Float16Lanes a, Float16Lanes b, Float16Lanes c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Float16Lanes>(_mm512_maskz_fmadd_ps(0xffff, reinterpret_cast<__m512>(a),
                                                              reinterpret_cast<__m512>(b),
                                                              reinterpret_cast<__m512>(c)));
#elif defined(__FMA__)
  Float16Lanes result;
  for (int half = 0; half < 2; ++half) {
    __m256 x, y, z;
    __builtin_memcpy(&x, reinterpret_cast<const char*>(&a) + 32 * half, sizeof x);
    __builtin_memcpy(&y, reinterpret_cast<const char*>(&b) + 32 * half, sizeof y);
    __builtin_memcpy(&z, reinterpret_cast<const char*>(&c) + 32 * half, sizeof z);
    const __m256 sum = _mm256_fmadd_ps(x, y, z);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + 32 * half, &sum, sizeof sum);
  }
  return result;
#else
  Float16Lanes result;
  for (int i = 0; i < kLanes; ++i) result[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return result;
#endif
}

SNUG_INLINE Float16Lanes magnitude(Float16Lanes x) {
  return reinterpret_cast<Float16Lanes>(reinterpret_cast<Uint16Lanes>(x) & 0x7fffffffU);
}

SNUG_INLINE Float16Lanes decode(const DynamicCodec& codec, const uint8_t* codes, int64_t n) {
  float values[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) values[i] = codec.map[codes[i]];
  return load(values);
}

// `is_signed`: a code whose sign differs from the value's moves one towards it.
SNUG_INLINE void encode(const DynamicCodec& codec, const float* values, float scale, bool is_signed,
                        uint8_t* codes, int64_t n) {
  const Float16Lanes scaled = load(values) / scale;
  float quotient[kLanes];
  store(quotient, scaled);
  for (int64_t i = 0; i < n; ++i) {
    const float x = quotient[i];
    const uint32_t interval = __builtin_bit_cast(uint32_t, x) >> 16;
    uint32_t code = codec.first[interval];
    code += x >= codec.threshold[code] ? 1U : 0U;
    if (is_signed) {
      const uint32_t negative = __builtin_bit_cast(uint32_t, values[i]) >> 31;
      const uint32_t code_negative = code < 127 ? 1U : 0U;
      if (negative != code_negative) code += values[i] > 0.0F ? 1U : ~0U;
    }
    codes[i] = static_cast<uint8_t>(code);
  }
}

SNUG_INLINE void store_weight(float* out, Float16Lanes x, Uint16Lanes, int64_t n) {
  store_partial(out, x, n);
}
SNUG_INLINE void store_weight(uint16_t* out, Float16Lanes x, Uint16Lanes bits, int64_t n) {
  const Half16Lanes half = round_stochastically(x, bits);
  __builtin_memcpy(out, &half, static_cast<uint64_t>(n) * sizeof(uint16_t));
}

// A block's moments, and the largest magnitude so far in each lane.
struct BlockState {
  float moment[2][kBlock];
  Float16Lanes largest[2];
};

// Up to 16 elements from `i` of the block on; their moments go into `state`.
template <typename G, typename W>
SNUG_INLINE void advance(const AdamW8bitStep& step, const AdamW8bitRun& run, int64_t begin,
                         int64_t i, int64_t n, Uint16Lanes bits, BlockState& state) {
  const int64_t at = begin + i;
  W* weight = static_cast<W*>(run.weight) + at;
  const Float16Lanes raw = n == kLanes
                               ? load(static_cast<const G*>(run.gradient) + at)
                               : load_partial(static_cast<const G*>(run.gradient) + at, n, 0.0F);
  const Float16Lanes old = n == kLanes ? load(weight) : load_partial(weight, n, 0.0F);
  const auto finite = reinterpret_cast<Uint16Lanes>(
      (reinterpret_cast<Uint16Lanes>(raw) & 0x7f800000U) != Uint16Lanes{} + 0x7f800000U);
  const auto where_finite = [&](Float16Lanes x) {
    return reinterpret_cast<Float16Lanes>(reinterpret_cast<Uint16Lanes>(x) & finite);
  };
  const int64_t block = begin / kBlock;
  const Float16Lanes g = raw * step.factor;
  const Float16Lanes first_old = decode(step.codec[0], run.codes[0] + at, n) * run.scales[0][block];
  const Float16Lanes second_old =
      decode(step.codec[1], run.codes[1] + at, n) * run.scales[1][block];
  const Float16Lanes first = fused(g, splat(1.0F - step.beta1), first_old * step.beta1);
  const Float16Lanes second = fused(g * (1.0F - step.beta2), g, second_old * step.beta2);
  const Float16Lanes moments[2] = {where_finite(first), where_finite(second)};
  for (int k = 0; k < 2; ++k) {
    store(state.moment[k] + i, moments[k]);
    state.largest[k] = maximum(magnitude(moments[k]), state.largest[k]);
  }
  const Float16Lanes direction = first / (square_root(second) + step.epsilon);
  const Float16Lanes stepped = fused(splat(-step.step_size), direction, old) * step.keep;
  store_weight(weight, select(reinterpret_cast<Int16Lanes>(finite), stepped, old), bits, n);
}

template <typename G, typename W>
void adamw_8bit(const AdamW8bitStep& step_of_all, const AdamW8bitRun& run) {
  const AdamW8bitStep step = step_of_all;  // a copy that the weights cannot alias
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
      for (int64_t i = 0; i < size; i += kLanes)
        encode(step.codec[k], state.moment[k] + i, scale, k == 0, run.codes[k] + begin + i,
               size - i < kLanes ? size - i : kLanes);
    }
  }
}

}  // namespace

extern const Optimizer8bitKernels kOptimizer8bitKernels;
const Optimizer8bitKernels kOptimizer8bitKernels = {
    .adamw_8bit = {{adamw_8bit<float, float>, adamw_8bit<float, uint16_t>},
                   {adamw_8bit<uint16_t, float>, adamw_8bit<uint16_t, uint16_t>}},
};

}  // namespace snug::backends::cpu::SNUG_ISA
