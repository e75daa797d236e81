// The kernels of the update: sums of squares, and AdamW over runs of elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"
#include "backends/formulas/adamw_factors.h"

namespace snug::backends::cpu {

// The values that all elements of one AdamW step share.
struct AdamWStep {
  float factor;  // multiplies the gradient
  float beta1;
  float beta2;
  float epsilon;
  AdamWFactors of_step;
  uint32_t key[2];  // the key of the random stream for rounding
};

// A run of a tensor's elements. With stochastic rounding `first` is a multiple of 128.
struct AdamWRun {
  const void* gradient;
  void* weight;
  void* first_moment;
  void* second_moment;
  float* master;  // may be the weight itself
  int64_t first;  // index of the run's first element in its tensor
  int64_t n;
};

struct OptimizerKernels {
  float (*sum_of_squares[kElements])(const void* x, int64_t n);
  // Indexed by [type of gradient][type of weight]: f32 moments and master.
  void (*adamw[kElements][kElements])(const AdamWStep& step, const AdamWRun& run);
  // Indexed by [type of gradient]: weight and moments in bf16, all rounded stochastically; no
  // master.
  void (*adamw_stochastic[kElements])(const AdamWStep& step, const AdamWRun& run);
};

}  // namespace snug::backends::cpu
