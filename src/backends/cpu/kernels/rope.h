// Rotary position embedding of one token.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct RopeForm {
  int64_t heads;
  int64_t head_dim;
  float direction;  // 1, or -1 to turn back
};

struct RopeKernels {
  // x, y: (heads, head_dim); table: head_dim / 2 cosines, then sines. y may be x.
  void (*turn[kElements])(const void* x, const float* table, void* y, const RopeForm& form);
};

}  // namespace snug::backends::cpu
