// The gated products activation(gate) * up over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"
#include "backends/gate_activation.h"

namespace snug::backends::cpu {

// The backward pass over a run of elements. dgate and dup may be any two of dy, gate and up.
struct GatedMulRun {
  const void* dy;
  const void* gate;
  const void* up;
  void* dgate;
  void* dup;
  int64_t n;
};

struct GatedMulKernels {
  // Indexed by [activation][type]. y may be gate or up.
  void (*forward[kGateActivations][kElements])(const void* gate, const void* up, void* y,
                                               int64_t n);
  void (*backward[kGateActivations][kElements])(const GatedMulRun& run);
};

}  // namespace snug::backends::cpu
