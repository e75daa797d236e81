// The parts of Muon that work on each element alone, over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"

namespace snug::backends::cpu {

// momentum += (g - momentum) share; direction = momentum + (g - momentum) gradient_share,
// where g is gradient * factor.
struct MuonMomentumRun {
  const void* gradient;
  float* momentum;
  void* direction;
  int64_t n;
};

// master = master keep - direction rate, also to the weight.
struct MuonStepRun {
  const void* direction;
  void* weight;
  float* master;  // may be the weight itself
  int64_t n;
};

struct MuonMomentumNumbers {
  float factor;
  float share;           // 1 - the momentum's decay
  float gradient_share;  // of the direction: 1 - decay with Nesterov's, else 0
};

struct MuonStepNumbers {
  float keep;
  float rate;
};

struct MuonKernels {
  // [gradient][direction].
  void (*advance[kElements][kElements])(const MuonMomentumNumbers& numbers,
                                        const MuonMomentumRun& run);
  // [direction][weight].
  void (*step[kElements][kElements])(const MuonStepNumbers& numbers, const MuonStepRun& run);
};

}  // namespace snug::backends::cpu
