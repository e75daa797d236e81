// Muon's elementwise parts, over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// momentum += (g - momentum) * share; direction = momentum + (g - momentum) * gradient_share, where
// g is gradient * factor.
struct MuonMomentumRun {
  const void* gradient;
  float* momentum;
  void* direction;
  int64_t n;
};

// master = master * keep - direction * rate; the result also goes to the weight.
struct MuonStepRun {
  const void* direction;
  void* weight;
  float* master;  // may be the weight itself
  int64_t n;
};

struct MuonMomentumNumbers {
  float factor;
  float share;           // 1 - the decay of the momentum
  float gradient_share;  // 1 - decay with Nesterov momentum, else 0
};

struct MuonStepNumbers {
  float keep;
  float rate;
};

struct MuonKernels {
  // Indexed by [type of gradient][type of direction].
  void (*advance[kElements][kElements])(const MuonMomentumNumbers& numbers,
                                        const MuonMomentumRun& run);
  // Indexed by [type of direction][type of weight].
  void (*step[kElements][kElements])(const MuonStepNumbers& numbers, const MuonStepRun& run);
};

}  // namespace snug::backends::cpu
