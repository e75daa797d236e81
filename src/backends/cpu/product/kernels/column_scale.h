// Multiplies rows by one factor per column, in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct ColumnScaleKernels {
  // factors = gain, or gain / divisor if the divisor is not null.
  void (*factors[kElements])(const void* gain, const float* divisor, float* factors, int64_t n);
  // y = x * factors; y may be x.
  void (*multiply[kElements][kElements])(const void* x, const float* factors, void* y, int64_t n);
  // Indexed by [type of dy][type of x]: sums += dy * x.
  void (*add_products[kElements][kElements])(const void* dy, const void* x, float* sums, int64_t n);
  // sums /= divisor.
  void (*divide)(const float* divisor, float* sums, int64_t n);
};

}  // namespace snug::backends::cpu
