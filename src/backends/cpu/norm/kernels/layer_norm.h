// LayerNorm of one row, statistics in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// One row. y may be x.
struct LayerNormRow {
  const void* x;
  const void* w;
  const void* bias;  // or null; of w's type
  void* y;
  int64_t d;
  float epsilon;
};

// One row of a derivative. dx may be dy, x or addend.
struct LayerNormGradRow {
  const void* dy;
  const void* x;
  const void* w;
  const void* addend;  // or null
  void* dx;
  float* dw;  // or null: dw[j] += dy[j] * x[j] normalised
  int64_t d;
  float epsilon;
};

struct LayerNormKernels {
  // [x and y][w and bias].
  void (*forward[kElements][kElements])(const LayerNormRow& row);
  // [dy, x, addend and dx][w].
  void (*backward[kElements][kElements])(const LayerNormGradRow& row);
};

}  // namespace snug::backends::cpu
