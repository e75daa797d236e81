// The gated activation gelu(gate) * up over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// The backward pass over a run of elements. dgate and dup may be any two of dy, gate and up.
struct GeluMulRun {
  const void* dy;
  const void* gate;
  const void* up;
  void* dgate;
  void* dup;
  int64_t n;
};

struct GeluMulKernels {
  // Indexed by [tanh form][type]. y may be gate or up.
  void (*forward[2][kElements])(const void* gate, const void* up, void* y, int64_t n);
  void (*backward[2][kElements])(const GeluMulRun& run);
};

}  // namespace snug::backends::cpu
