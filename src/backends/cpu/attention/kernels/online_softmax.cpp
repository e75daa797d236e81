#include "backends/cpu/attention/kernels/online_softmax.h"

#include "backends/cpu/kernels/exp2.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr float kLowest = -__FLT_MAX__;
constexpr int64_t kPadding = 32;

// Four independent registers hide the latency of the comparison.
float largest_of(const float* x, int64_t n) {
  Float16Lanes largest[4] = {splat(kLowest), splat(kLowest), splat(kLowest), splat(kLowest)};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int64_t j = 0; j < 4; ++j) largest[j] = maximum(largest[j], load(x + i + j * kLanes));
  for (; i + kLanes <= n; i += kLanes) largest[0] = maximum(largest[0], load(x + i));
  if (i < n) largest[1] = maximum(largest[1], load_partial(x + i, n - i, kLowest));
  return reduce_max(maximum(maximum(largest[0], largest[1]), maximum(largest[2], largest[3])));
}

// e^x for x <= 0.
SNUG_INLINE Float16Lanes exponential(Float16Lanes x) { return exp2(x * kLog2OfE); }

float add(const float* x, int64_t n, float* largest, float* sum, uint16_t* y) {
  const float before = *largest;
  const float of_run = largest_of(x, n);
  const float top = of_run > before ? of_run : before;
  Float16Lanes total[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes)
    for (int64_t j = 0; j < 2; ++j) {
      const Float16Lanes e = exponential(load(x + i + j * kLanes) - top);
      total[j] += e;
      store(y + i + j * kLanes, e);
    }
  for (; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const Float16Lanes e = exponential(load_partial(x + i, count, 0.0F) - top);
    float kept[kLanes] = {};
    store_partial(kept, e, count);
    total[0] += load(kept);
    store_partial(y + i, e, count);
  }
  for (i = n; i % kPadding != 0; ++i) y[i] = 0;
  float factor[kLanes];
  store(factor, exponential(splat(before - top)));
  *largest = top;
  const float scaled = before == top ? *sum : *sum * factor[0];
  *sum = scaled + reduce_add(total[0] + total[1]);
  return before == top ? 1.0F : factor[0];
}

void scale(float* x, int64_t n, float factor) {
  for_each_lanes(n, [=](int64_t i, auto part) { store(x + i, load(x + i, part) * factor, part); });
}

void gradient(const float* x, const uint16_t* target, int64_t n, const float (&factor_scale)[2],
              uint16_t* to) {
  const float factor = factor_scale[0];
  const float scale_of_all = factor_scale[1];
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(to + i, (load(x + i, part) * factor - load(target + i, part)) * scale_of_all, part);
  });
}

}  // namespace

extern const OnlineSoftmaxKernels kOnlineSoftmaxKernels;
const OnlineSoftmaxKernels kOnlineSoftmaxKernels = {
    .add = add, .scale = scale, .gradient = gradient};

}  // namespace snug::backends::cpu::SNUG_ISA
