#include "backends/cpu/attention/kernels/softmax.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

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
void statistics(const void* x_bytes, int64_t n, float* largest, float* sum) {
  const Element* x = static_cast<const Element*>(x_bytes);
  const float top = largest_of(x, n);
  Float16Lanes total{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) total += exp(load(x + i) - top);
  if (i < n) total += exp(load_partial(x + i, n - i, kLowest) - top);
  *largest = top;
  *sum = reduce_add(total);
}

template <typename X, typename Y>
void gradient(const void* x_bytes, int64_t n, float lse, float scale, void* y_bytes) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_lanes(
      n, [=](int64_t i, auto part) { store(y + i, exp(load(x + i, part) - lse) * scale, part); });
}

template <typename Y>
void capped_gradient(const float* x, int64_t n, const CappedSoftmax& softmax_of_row,
                     void* y_bytes) {
  const CappedSoftmax softmax = softmax_of_row;  // a local copy, which y cannot alias
  Y* y = static_cast<Y*>(y_bytes);
  const float inverse = 1.0F / softmax.cap;
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes logit = load(x + i, part);
    const Float16Lanes share = logit * inverse;
    store(y + i, exp(logit - softmax.lse) * softmax.scale * (1.0F - share * share), part);
  });
}

template <typename Element>
float sum(const void* x_bytes, int64_t n) {
  const Element* x = static_cast<const Element*>(x_bytes);
  Float16Lanes total{};
  for_each_lanes(n, [&](int64_t i, auto part) { total += load(x + i, part); });
  return reduce_add(total);
}

template <typename X, typename Y>
void smoothed_gradient(const void* x_bytes, int64_t n, const SmoothedSoftmax& softmax_of_row,
                       void* y_bytes) {
  const SmoothedSoftmax softmax = softmax_of_row;  // a local copy, which y cannot alias
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  const float inverse = softmax.cap > 0.0F ? 1.0F / softmax.cap : 0.0F;
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes logit = load(x + i, part);
    const Float16Lanes of_cap = logit * inverse;
    store(y + i,
          (exp(logit - softmax.lse) - softmax.share) * softmax.scale * (1.0F - of_cap * of_cap),
          part);
  });
}

}  // namespace

extern const SoftmaxKernels kSoftmaxKernels;
const SoftmaxKernels kSoftmaxKernels = {
    .statistics = SNUG_BY_ELEMENT(statistics),
    .gradient = SNUG_BY_TWO_ELEMENTS(gradient),
    .capped_gradient = SNUG_BY_ELEMENT(capped_gradient),
    .sum = SNUG_BY_ELEMENT(sum),
    .smoothed_gradient = SNUG_BY_TWO_ELEMENTS(smoothed_gradient),
};

}  // namespace snug::backends::cpu::SNUG_ISA
