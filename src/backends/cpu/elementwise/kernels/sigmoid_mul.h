// The gated activation sigmoid(gate) * up over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// The backward pass over a run of elements. dgate and dup may be any two of dy, gate and up.
struct SigmoidMulRun {
  const void* dy;
  const void* gate;
  const void* up;
  void* dgate;
  void* dup;
  int64_t n;
};

struct SigmoidMulKernels {
  // y may be gate or up.
  void (*forward[kElements])(const void* gate, const void* up, void* y, int64_t n);
  void (*backward[kElements])(const SigmoidMulRun& run);
};

}  // namespace snug::backends::cpu
