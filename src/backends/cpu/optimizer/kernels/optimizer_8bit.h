// The kernel of AdamW with 8-bit moments, over whole blocks of 256 elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"
#include "backends/formulas/adamw_factors.h"

namespace snug::backends::cpu {

// How one moment is decoded and encoded. The upper half of an fp32 says in which interval it lies;
// an interval holds at most one threshold of the map, so that
//   code(x) = first[x >> 16] + (x >= threshold[first[x >> 16]])
// is what base::encode_dynamic finds.
struct DynamicCodec {
  const float* map;        // 256
  const float* threshold;  // 256, the last of them infinite
  const uint8_t* first;    // 65536 and 3 more: the code of an interval's lowest number
};

// What is the same for all elements of one step; see program/kinds/optimizer/optimizer.h.
struct AdamW8bitStep {
  float factor;  // of the gradient
  float beta1;
  float beta2;
  AdamW8bitFactors of_step;
  uint32_t key[2];  // of the rounding stream
  DynamicCodec codec[2];
};

// A run of a tensor's elements that starts with a block.
struct AdamW8bitRun {
  const void* gradient;
  void* weight;
  uint8_t* codes[2];  // of the first and second moment
  float* scales[2];   // one a block
  int64_t first;      // index of the run's first element in its tensor: a multiple of 256
  int64_t n;
};

struct Optimizer8bitKernels {
  // [gradient][weight]: a weight of bf16 is rounded stochastically.
  void (*adamw_8bit[kElements][kElements])(const AdamW8bitStep& step, const AdamW8bitRun& run);
};

}  // namespace snug::backends::cpu
