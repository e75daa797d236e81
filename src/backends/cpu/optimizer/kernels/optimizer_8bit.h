// The kernel of AdamW with 8-bit moments, over whole blocks of 256 elements.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/element.h"
#include "backends/formulas/adamw_factors.h"

namespace snug::backends::cpu {

// Decodes and encodes one moment. The upper half of an fp32 gives the interval in which it lies; an
// interval holds at most one threshold of the map, so that
//   code(x) = first[x >> 16] + (x >= threshold[first[x >> 16]])
// equals base::encode_dynamic.
struct DynamicCodec {
  const float* map;        // 256 elements
  const float* threshold;  // 256 elements, the last one infinite
  const uint8_t* first;    // 65536 and 3 of padding: the code of each interval's lowest number
};

// The values that all elements of one step share; see program/kinds/optimizer/optimizer.h.
struct AdamW8bitStep {
  float factor;  // multiplies the gradient
  float beta1;
  float beta2;
  AdamW8bitFactors of_step;
  uint32_t key[2];  // the key of the random stream for rounding
  DynamicCodec codec[2];
};

// A run of a tensor's elements that starts with a block.
struct AdamW8bitRun {
  const void* gradient;
  void* weight;
  uint8_t* codes[2];  // codes of the first and the second moment
  float* scales[2];   // one per block
  int64_t first;      // index of the run's first element in its tensor: a multiple of 256
  int64_t n;
};

struct Optimizer8bitKernels {
  // Indexed by [type of gradient][type of weight]: a bf16 weight is rounded stochastically.
  void (*adamw_8bit[kElements][kElements])(const AdamW8bitStep& step, const AdamW8bitRun& run);
};

}  // namespace snug::backends::cpu
