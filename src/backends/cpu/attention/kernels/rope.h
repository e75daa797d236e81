// Rotary position embedding of one token.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct RopeForm {
  int64_t heads;
  int64_t head_dim;
  int64_t width;    // elements of a head that are rotated; the others are copied
  float direction;  // 1, or -1 to rotate back
};

struct RopeKernels {
  // x, y: (heads, head_dim); table: width / 2 cosines, then as many sines. y may be x. The two
  // elements of a pair are width / 2 apart for rotate, and adjacent for rotate_neighbours.
  void (*rotate[kElements])(const void* x, const float* table, void* y, const RopeForm& form);
  void (*rotate_neighbours[kElements])(const void* x, const float* table, void* y,
                                       const RopeForm& form);
};

}  // namespace snug::backends::cpu
