// Lion over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"
#include "backends/formulas/lion_step.h"

namespace snug::backends::cpu {

// A run of a tensor's elements.
struct LionRun {
  const void* gradient;
  void* weight;
  float* momentum;
  float* master;  // may be the weight itself
  int64_t n;
};

struct LionKernels {
  // Indexed by [type of gradient][type of weight].
  void (*step[kElements][kElements])(const LionStep& step, const LionRun& run);
};

}  // namespace snug::backends::cpu
