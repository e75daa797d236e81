// The global norm, clipping and AdamW. Values that change from step to step are read on the device.
// A launch takes as many tensors as its arguments have room for.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/kernels/tensor_list.h"

namespace snug::backends::cuda {

// The rows of a gradient; each block of the grid computes one of its norm_partials.
struct SquaresTensor {
  DeviceRows x;
  int64_t columns = 0;
  float* partials = nullptr;
  uint32_t first_block = 0;
  bool vectors = false;
};
using SquaresList = TensorList<SquaresTensor, 80>;
static_assert(sizeof(SquaresList) <= kArgumentBytes);
void sum_squares(const SquaresList& list, cudaStream_t stream);

// norm = the root of the sum of all partial sums. After these there is room for the blocks' sums
// (norm_scratch_bytes).
void finish_norm(float* partials, int64_t count, float* norm, cudaStream_t stream);

void clip_factor(const float* norm, float max_norm, float* factor, cudaStream_t stream);

// The scalars on the device that every form of AdamW reads.
struct AdamWScalars {
  const float* factor = nullptr;  // if NaN, nothing changes
  const float* learning_rate = nullptr;
  const int32_t* step = nullptr;
  bool operator==(const AdamWScalars&) const = default;
};

// The values that all tensors of a launch share.
struct AdamWConstants {
  AdamWScalars scalars;
  float beta1 = 0.0F;
  float beta2 = 0.0F;
  float epsilon = 0.0F;
  int64_t seed = 0;
  bool operator==(const AdamWConstants&) const = default;
};

// A tensor's own data in a launch, for any form.
struct AdamWTensor {
  int64_t elements = 0;
  int64_t first = 0;  // the index of a rank's part in the whole tensor: a multiple of 256
  uint32_t first_block = 0;
  int32_t site = 0;
  float weight_decay = 0.0F;
  ElementFormat gradient_format = ElementFormat::f32;
  ElementFormat weight_format = ElementFormat::f32;
  bool vectors = false;  // everything can be read kVectorElements at a time
  void* gradient = nullptr;
  void* weight = nullptr;
};

// Moments are f32, and so is the master, which is the weight itself if that is f32.
struct MasterTensor : AdamWTensor {
  void* moments[2] = {};
  void* master = nullptr;
};
// Weight and moments are bf16 and rounded stochastically.
struct StochasticTensor : AdamWTensor {
  void* moments[2] = {};
};
// Moments are 8-bit codes, with a scale for each block of 256.
struct CodedTensor : AdamWTensor {
  uint8_t* codes[2] = {};
  float* scales[2] = {};
};

template <typename Tensor, int kCapacity>
struct AdamWLaunch {
  AdamWConstants constants;
  TensorList<Tensor, kCapacity> tensors;
};
using AdamWMaster = AdamWLaunch<MasterTensor, kTensorsPerStep>;
using AdamWStochastic = AdamWLaunch<StochasticTensor, kTensorsPerStep>;
using AdamW8bitCodes = AdamWLaunch<CodedTensor, kTensorsPer8bitStep>;

// The value of each code.
struct DynamicMaps {
  float at[2][256];  // one map for the first and one for the second moment
};
static_assert(sizeof(AdamWMaster) <= kArgumentBytes);
static_assert(sizeof(AdamWStochastic) <= kArgumentBytes);
static_assert(sizeof(AdamW8bitCodes) + sizeof(DynamicMaps) <= kArgumentBytes);

// The number of blocks that step a tensor.
int64_t step_blocks(const MasterTensor& tensor);
int64_t step_blocks(const StochasticTensor& tensor);
int64_t step_blocks(const CodedTensor& tensor);

void adamw(const AdamWMaster& launch, cudaStream_t stream);
void adamw(const AdamWStochastic& launch, cudaStream_t stream);
void adamw(const AdamW8bitCodes& launch, const DynamicMaps& maps, cudaStream_t stream);

}  // namespace snug::backends::cuda
