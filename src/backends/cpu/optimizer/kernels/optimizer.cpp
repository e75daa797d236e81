#include "backends/cpu/optimizer/kernels/optimizer.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/random_lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

template <typename X>
float sum_of_squares(const void* x_bytes, int64_t n) {
  const X* x = static_cast<const X*>(x_bytes);
  Float16Lanes sum[4] = {};
  constexpr int64_t kWide = 4 * kLanes;
  constexpr int64_t kAhead = 256;  // elements: further than a core asks for by itself
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide)
    for (int64_t k = 0; k < 4; ++k) {
      __builtin_prefetch(x + i + k * kLanes + kAhead);
      const Float16Lanes value = load(x + i + k * kLanes);
      sum[k] += value * value;
    }
  for_each_lanes(n - i, [&](int64_t j, auto part) {
    const Float16Lanes value = load(x + i + j, part);
    sum[0] += value * value;
  });
  return reduce_add((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

struct StateLanes {
  Float16Lanes weight;
  Float16Lanes first_moment;
  Float16Lanes second_moment;
};

// adamw_factors.h defines the order of operations, which is the same on every machine.
SNUG_INLINE StateLanes advance(const AdamWStep& step, StateLanes state, Float16Lanes gradient) {
  const AdamWFactors& factors = step.of_step;
  const Float16Lanes g = gradient * step.factor;
  const Float16Lanes first = state.first_moment * step.beta1 + g * (1.0F - step.beta1);
  const Float16Lanes second = state.second_moment * step.beta2 + g * g * (1.0F - step.beta2);
  const Float16Lanes root = square_root(second * factors.inverse_second_correction) + step.epsilon;
  return {state.weight * factors.keep - first * factors.step_size / root, first, second};
}

template <typename G, typename W>
void adamw(const AdamWStep& step_of_all, const AdamWRun& run) {
  const AdamWStep step = step_of_all;  // a local copy, which the weights cannot alias
  const G* gradient = static_cast<const G*>(run.gradient);
  W* weight = static_cast<W*>(run.weight);
  float* first = static_cast<float*>(run.first_moment);
  float* second = static_cast<float*>(run.second_moment);
  float* master = run.master;
  for_each_lanes(run.n, [&](int64_t i, auto part) {
    const StateLanes old = {load(master + i, part), load(first + i, part), load(second + i, part)};
    const StateLanes next = advance(step, old, load(gradient + i, part));
    store(first + i, next.first_moment, part);
    store(second + i, next.second_moment, part);
    store(master + i, next.weight, part);
    if constexpr (sizeof(W) != sizeof(float)) store(weight + i, next.weight, part);
  });
}

SNUG_INLINE void store_rounded(uint16_t* out, Float16Lanes x, Uint16Lanes bits, Whole) {
  const Half16Lanes half = round_stochastically(x, bits);
  __builtin_memcpy(out, &half, sizeof half);
}
SNUG_INLINE void store_rounded(uint16_t* out, Float16Lanes x, Uint16Lanes bits, Part part) {
  const Half16Lanes half = round_stochastically(x, bits);
  __builtin_memcpy(out, &half, static_cast<uint64_t>(part.count) * sizeof(uint16_t));
}

template <typename G>
void adamw_stochastic(const AdamWStep& step_of_all, const AdamWRun& run) {
  const AdamWStep step = step_of_all;  // a local copy, which the weights cannot alias
  constexpr int64_t kBlock = 128;
  uint16_t* planes[3] = {static_cast<uint16_t*>(run.weight),
                         static_cast<uint16_t*>(run.first_moment),
                         static_cast<uint16_t*>(run.second_moment)};
  for (int64_t begin = 0; begin < run.n; begin += kBlock) {
    RoundingLanes drawn[3];
    for (uint32_t plane = 0; plane < 3; ++plane)
      drawn[plane] = rounding_lanes(step.key, plane, (run.first + begin) / kBlock);
    const G* gradient = static_cast<const G*>(run.gradient) + begin;
    uint16_t* weight = planes[0] + begin;
    uint16_t* first = planes[1] + begin;
    uint16_t* second = planes[2] + begin;
    const auto step_lanes = [&](int64_t i, auto part) {
      const StateLanes old = {load(weight + i, part), load(first + i, part),
                              load(second + i, part)};
      const StateLanes next = advance(step, old, load(gradient + i, part));
      const int64_t k = i / kLanes;
      store_rounded(weight + i, next.weight, drawn[0].bits[k], part);
      store_rounded(first + i, next.first_moment, drawn[1].bits[k], part);
      store_rounded(second + i, next.second_moment, drawn[2].bits[k], part);
    };
    for_each_lanes(run.n - begin < kBlock ? run.n - begin : kBlock, step_lanes);
  }
}

}  // namespace

extern const OptimizerKernels kOptimizerKernels;
const OptimizerKernels kOptimizerKernels = {
    .sum_of_squares = SNUG_BY_ELEMENT(sum_of_squares),
    .adamw = SNUG_BY_TWO_ELEMENTS(adamw),
    .adamw_stochastic = {adamw_stochastic<float>, adamw_stochastic<uint16_t>, nullptr},
};

}  // namespace snug::backends::cpu::SNUG_ISA
