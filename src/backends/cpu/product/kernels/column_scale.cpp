#include "backends/cpu/product/kernels/column_scale.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// Missing lanes of divisor and gain are 0; their quotients are not stored.
template <typename Gain>
void column_factors(const void* gain_bytes, const float* divisor, float* factors, int64_t n) {
  const Gain* gain = static_cast<const Gain*>(gain_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    Float16Lanes factor = load(gain + i, part);
    if (divisor != nullptr) factor = factor / load(divisor + i, part);
    store(factors + i, factor, part);
  });
}

template <typename X, typename Y>
void multiply_columns(const void* x_bytes, const float* factors, void* y_bytes, int64_t n) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(y + i, load(x + i, part) * load(factors + i, part), part);
  });
}

template <typename DY, typename X>
void add_column_products(const void* dy_bytes, const void* x_bytes, float* sums, int64_t n) {
  const DY* dy = static_cast<const DY*>(dy_bytes);
  const X* x = static_cast<const X*>(x_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(sums + i, load(sums + i, part) + load(dy + i, part) * load(x + i, part), part);
  });
}

void divide_columns(const float* divisor, float* sums, int64_t n) {
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(sums + i, load(sums + i, part) / load(divisor + i, part), part);
  });
}

}  // namespace

extern const ColumnScaleKernels kColumnScaleKernels;
const ColumnScaleKernels kColumnScaleKernels = {
    .factors = SNUG_BY_ELEMENT(column_factors),
    .multiply = SNUG_BY_TWO_ELEMENTS(multiply_columns),
    .add_products = SNUG_BY_TWO_ELEMENTS(add_column_products),
    .divide = divide_columns,
};

}  // namespace snug::backends::cpu::SNUG_ISA
