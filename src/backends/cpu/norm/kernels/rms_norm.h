// RMSNorm of one row, statistics in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// One row of a derivative. dx may be dy, x or addend.
struct RmsNormRow {
  const void* dy;
  const void* x;
  const void* w;
  const void* addend;  // or null
  void* dx;
  float* dw;  // or null: dw[j] += dy[j] * x[j] / root mean square
  int64_t d;
  float epsilon;
  float offset;  // of w
};

struct RmsNormKernels {
  // [x and y][w]. y may be x.
  void (*forward[kElements][kElements])(const void* x, const void* w, void* y, int64_t d,
                                        float epsilon, float offset);
  // [dy, x, addend and dx][w].
  void (*backward[kElements][kElements])(const RmsNormRow& row);
};

}  // namespace snug::backends::cpu
