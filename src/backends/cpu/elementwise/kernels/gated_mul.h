// The gated products activation(gate) * up over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// What is done with the gate; the two forms of gelu are those of the kind gelu.
enum class GateActivation { sigmoid, silu, gelu, gelu_tanh };
inline constexpr int kGateActivations = 4;

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
