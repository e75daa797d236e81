// LayerNorm of one row, statistics in fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// One row of the forward pass. y may be x.
struct LayerNormRow {
  const void* x;
  const void* w;
  const void* bias;  // has w's type; null if none
  void* y;
  int64_t d;
  float epsilon;
};

// One row of the backward pass. dx may be dy, x or addend.
struct LayerNormGradRow {
  const void* dy;
  const void* x;
  const void* w;
  const void* addend;  // null if none
  void* dx;
  float* dw;  // dw[j] += dy[j] * normalised x[j]; null if not wanted
  int64_t d;
  float epsilon;
};

struct LayerNormKernels {
  // Indexed by [type of x and y][type of w and bias].
  void (*forward[kElements][kElements])(const LayerNormRow& row);
  // Indexed by [type of dy, x, addend and dx][type of w].
  void (*backward[kElements][kElements])(const LayerNormGradRow& row);
};

}  // namespace snug::backends::cpu
