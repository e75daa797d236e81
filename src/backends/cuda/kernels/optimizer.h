// The global norm, clipping and AdamW. What changes from step to step is read on the device.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/operand.h"
#include "backends/cuda/kernels/sizes.h"

namespace snug::backends::cuda {

struct SquaresRun {
  Walk walk;
  Operand x;
  float* partials = nullptr;  // norm_partials of the walk
};
void sum_squares(const SquaresRun& run, cudaStream_t stream);

// norm = the root of the sum of all partials.
void finish_norm(const float* partials, int64_t count, float* norm, cudaStream_t stream);

void clip_factor(const float* norm, float max_norm, float* factor, cudaStream_t stream);

// The scalars that every form of AdamW reads, on the device.
struct AdamWScalars {
  const float* factor = nullptr;  // NaN: nothing is changed
  const float* learning_rate = nullptr;
  const int32_t* step = nullptr;
};

struct AdamWConstants {
  float beta1 = 0.0F;
  float beta2 = 0.0F;
  float epsilon = 0.0F;
  float weight_decay = 0.0F;
  int64_t seed = 0;
  int32_t site = 0;
};

// One row of elements. `master` is the weight itself where that is f32.
struct AdamWRun {
  Walk walk;
  AdamWScalars scalars;
  AdamWConstants constants;
  Operand gradient, weight, first_moment, second_moment, master;
};
void adamw(const AdamWRun& run, cudaStream_t stream);
// Weight and moments are bf16 and rounded stochastically.
void adamw_stochastic(const AdamWRun& run, cudaStream_t stream);

struct DynamicMaps {
  float at[2][256];  // of the first moment, of the second
};

struct AdamW8bitRun {
  int64_t elements = 0;
  AdamWScalars scalars;
  AdamWConstants constants;
  Operand gradient, weight;
  uint8_t* codes[2] = {};
  float* scales[2] = {};  // a block of 256 elements
};
void adamw_8bit(const AdamW8bitRun& run, const DynamicMaps& maps, cudaStream_t stream);

}  // namespace snug::backends::cuda
