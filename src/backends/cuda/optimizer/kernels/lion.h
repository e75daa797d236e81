// Lion for as many tensors as a launch has room for.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/kernels/tensor_list.h"

namespace snug::backends::cuda {

// The values that all tensors of a launch share; those that change from step to step are read on
// the device.
struct LionConstants {
  const float* factor = nullptr;  // if NaN, nothing changes
  const float* learning_rate = nullptr;
  float beta1 = 0.0F;
  float beta2 = 0.0F;
  bool operator==(const LionConstants&) const = default;
};

struct LionTensor {
  int64_t elements = 0;
  uint32_t first_block = 0;
  float weight_decay = 0.0F;
  ElementFormat gradient_format = ElementFormat::f32;
  ElementFormat weight_format = ElementFormat::f32;
  bool vectors = false;  // everything can be read kVectorElements at a time
  void* gradient = nullptr;
  void* weight = nullptr;
  void* momentum = nullptr;  // type f32
  void* master = nullptr;    // type f32; the weight itself if that is f32
};

struct LionLaunch {
  LionConstants constants;
  TensorList<LionTensor, kTensorsPerStep> tensors;
};
static_assert(sizeof(LionLaunch) <= kArgumentBytes);

// The number of blocks that step a tensor.
int64_t step_blocks(const LionTensor& tensor);
void lion(const LionLaunch& launch, cudaStream_t stream);

}  // namespace snug::backends::cuda
