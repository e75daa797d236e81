// The gated activation of gpt-oss, over runs of adjacent pairs of a gate and an up element.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

struct ClampedSwigluForm {
  float limit, alpha;
};

// The backward pass over n pairs. dgate_up may be gate_up.
struct ClampedSwigluRun {
  ClampedSwigluForm form;
  const void* dy;       // (n)
  const void* gate_up;  // (2 n)
  void* dgate_up;
  int64_t n;
};

struct ClampedSwigluKernels {
  void (*forward[kElements])(const ClampedSwigluForm& form, const void* gate_up, void* y,
                             int64_t n);
  void (*backward[kElements])(const ClampedSwigluRun& run);
};

}  // namespace snug::backends::cpu
