#include "backends/cpu/norm/kernels/layer_norm.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// The mean of a row and the reciprocal root 1 / sqrt(variance + epsilon).
struct Statistics {
  float mean, root;
};

// The variance is the mean square of differences from the mean, since a mean of squares would lose
// values that are small compared with the mean. Missing lanes have a difference of 0.
SNUG_INLINE Float16Lanes difference(Float16Lanes x, float mean, Whole) { return x - mean; }
SNUG_INLINE Float16Lanes difference(Float16Lanes x, float mean, Part part) {
  float lane[kLanes] = {};
  store_partial(lane, x - mean, part.count);
  return load(lane);
}

template <typename X>
Statistics statistics_of(const X* x, int64_t d, float epsilon) {
  Float16Lanes sum = {};
  for_each_lanes(d, [&](int64_t i, auto part) { sum += load(x + i, part); });
  const float mean = reduce_add(sum) / static_cast<float>(d);
  Float16Lanes squares = {};
  for_each_lanes(d, [&](int64_t i, auto part) {
    const Float16Lanes apart = difference(load(x + i, part), mean, part);
    squares += apart * apart;
  });
  const float variance = reduce_add(squares) / static_cast<float>(d);
  return {mean, 1.0F / __builtin_sqrtf(variance + epsilon)};
}

template <typename X, typename W>
void forward(const LayerNormRow& row) {
  const X* x = static_cast<const X*>(row.x);
  const W* w = static_cast<const W*>(row.w);
  const W* bias = static_cast<const W*>(row.bias);
  X* y = static_cast<X*>(row.y);
  const Statistics statistics = statistics_of(x, row.d, row.epsilon);
  for_each_lanes(row.d, [=](int64_t i, auto part) {
    Float16Lanes value =
        (load(x + i, part) - statistics.mean) * statistics.root * load(w + i, part);
    if (bias != nullptr) value += load(bias + i, part);
    store(y + i, value, part);
  });
}

// With r the reciprocal root, n = r (x - mean) and g = dy w:
//   dx = r (g - mean(g) - n mean(g n)) + addend.
template <typename X, typename W>
void backward(const LayerNormGradRow& row) {
  const X* dy = static_cast<const X*>(row.dy);
  const X* x = static_cast<const X*>(row.x);
  const W* w = static_cast<const W*>(row.w);
  const X* addend = static_cast<const X*>(row.addend);
  X* dx = static_cast<X*>(row.dx);
  const Statistics statistics = statistics_of(x, row.d, row.epsilon);
  const float root = statistics.root;
  const float mean_of_x = statistics.mean;
  Float16Lanes sum = {};
  Float16Lanes products = {};
  for_each_lanes(row.d, [&](int64_t i, auto part) {
    const Float16Lanes g = load(dy + i, part) * load(w + i, part);
    sum += g;
    products += g * ((load(x + i, part) - mean_of_x) * root);
  });
  const float mean = reduce_add(sum) / static_cast<float>(row.d);
  const float mean_product = reduce_add(products) / static_cast<float>(row.d);
  for_each_lanes(row.d, [&](int64_t i, auto part) {
    const Float16Lanes normalised = (load(x + i, part) - mean_of_x) * root;
    const Float16Lanes dyi = load(dy + i, part);
    Float16Lanes value = (dyi * load(w + i, part) - mean - normalised * mean_product) * root;
    if (addend != nullptr) value += load(addend + i, part);
    if (row.dw != nullptr) store(row.dw + i, load(row.dw + i, part) + dyi * normalised, part);
    store(dx + i, value, part);
  });
}

}  // namespace

extern const LayerNormKernels kLayerNormKernels;
const LayerNormKernels kLayerNormKernels = {
    .forward = SNUG_BY_TWO_ELEMENTS(forward),
    .backward = SNUG_BY_TWO_ELEMENTS(backward),
};

}  // namespace snug::backends::cpu::SNUG_ISA
