// RMSNorm of one row, statistics in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// One row of the backward pass. dx may be dy, x or addend.
struct RmsNormRow {
  const void* dy;
  const void* x;
  const void* w;
  const void* addend;  // null if none
  void* dx;
  float* dw;  // dw[j] += dy[j] * x[j] / root mean square; null if not wanted
  int64_t d;
  float epsilon;
  float offset;  // added to w
};

struct RmsNormKernels {
  // Indexed by [type of x and y][type of w]. y may be x.
  void (*forward[kElements][kElements])(const void* x, const void* w, void* y, int64_t d,
                                        float epsilon, float offset);
  // Indexed by [type of dy, x, addend and dx][type of w].
  void (*backward[kElements][kElements])(const RmsNormRow& row);
};

}  // namespace snug::backends::cpu
