#include "backends/cpu/norm/kernels/rms_norm.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

SNUG_INLINE float reciprocal_root(float squares, int64_t d, float epsilon) {
  return 1.0F / __builtin_sqrtf(squares / static_cast<float>(d) + epsilon);
}

template <typename X>
float sum_of_squares(const X* x, int64_t d) {
  Float16Lanes sum[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= d; i += 2 * kLanes) {
    const Float16Lanes a = load(x + i);
    const Float16Lanes b = load(x + i + kLanes);
    sum[0] += a * a;
    sum[1] += b * b;
  }
  for_each_lanes(d - i, [&](int64_t j, auto part) {
    const Float16Lanes a = load(x + i + j, part);
    sum[0] += a * a;
  });
  return reduce_add(sum[0] + sum[1]);
}

template <typename X, typename W>
void forward(const void* x_bytes, const void* w_bytes, void* y_bytes, int64_t d, float epsilon,
             float offset) {
  const X* x = static_cast<const X*>(x_bytes);
  const W* w = static_cast<const W*>(w_bytes);
  X* y = static_cast<X*>(y_bytes);
  const float root = reciprocal_root(sum_of_squares(x, d), d, epsilon);
  for_each_lanes(d, [=](int64_t i, auto part) {
    store(y + i, load(x + i, part) * root * (load(w + i, part) + offset), part);
  });
}

// With r the reciprocal root and w the weight plus its offset:
//   dx = r (dy w - x r^2 mean(dy w x)) + addend.
template <typename X, typename W>
void backward(const RmsNormRow& row) {
  const X* dy = static_cast<const X*>(row.dy);
  const X* x = static_cast<const X*>(row.x);
  const W* w = static_cast<const W*>(row.w);
  const X* addend = static_cast<const X*>(row.addend);
  X* dx = static_cast<X*>(row.dx);
  Float16Lanes squares = {};
  Float16Lanes products = {};
  for_each_lanes(row.d, [&](int64_t i, auto part) {
    const Float16Lanes xi = load(x + i, part);
    squares += xi * xi;
    products += load(dy + i, part) * (load(w + i, part) + row.offset) * xi;
  });
  const float root = reciprocal_root(reduce_add(squares), row.d, row.epsilon);
  const float mean = reduce_add(products) / static_cast<float>(row.d);
  const float of_x = root * root * mean;
  for_each_lanes(row.d, [&](int64_t i, auto part) {
    const Float16Lanes xi = load(x + i, part);
    const Float16Lanes dyi = load(dy + i, part);
    Float16Lanes value = (dyi * (load(w + i, part) + row.offset) - xi * of_x) * root;
    if (addend != nullptr) value += load(addend + i, part);
    if (row.dw != nullptr) store(row.dw + i, load(row.dw + i, part) + dyi * xi * root, part);
    store(dx + i, value, part);
  });
}

}  // namespace

extern const RmsNormKernels kRmsNormKernels;
const RmsNormKernels kRmsNormKernels = {
    .forward = SNUG_BY_TWO_ELEMENTS(forward),
    .backward = SNUG_BY_TWO_ELEMENTS(backward),
};

}  // namespace snug::backends::cpu::SNUG_ISA
