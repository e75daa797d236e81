#include "backends/cpu/kernels/softmax.h"

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

constexpr float kLowest = -__FLT_MAX__;

template <typename Element>
float largest_of(const Element* x, int64_t n) {
  Float16Lanes largest = splat(kLowest);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) largest = maximum(largest, load(x + i));
  if (i < n) largest = maximum(largest, load_partial(x + i, n - i, kLowest));
  return reduce_max(largest);
}

template <typename Element>
void statistics(const Element* x, int64_t n, float* largest, float* sum) {
  const float top = largest_of(x, n);
  Float16Lanes total{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) total += exp(load(x + i) - top);
  if (i < n) total += exp(load_partial(x + i, n - i, kLowest) - top);
  *largest = top;
  *sum = reduce_add(total);
}

template <typename Element, typename Out>
void gradient(const Element* x, int64_t n, float lse, float scale, Out* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, exp(load(x + i) - lse) * scale);
  if (i < n) store_partial(out + i, exp(load_partial(x + i, n - i, 0.0F) - lse) * scale, n - i);
}

}  // namespace

extern const SoftmaxKernels kSoftmaxKernels;
const SoftmaxKernels kSoftmaxKernels = {
    .statistics_f32 = statistics<float>,
    .statistics_bf16 = statistics<uint16_t>,
    .gradient_f32_f32 = gradient<float, float>,
    .gradient_f32_bf16 = gradient<float, uint16_t>,
    .gradient_bf16_bf16 = gradient<uint16_t, uint16_t>,
};

}  // namespace snug::backends::cpu::SNUG_ISA
