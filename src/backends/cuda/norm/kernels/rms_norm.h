// The norm and its gradient. A block processes one row, or several where the weight's gradient is
// wanted; outputs may be the same memory as dy or x.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/norm/kernels/norm_weight_grad.h"

namespace snug::backends::cuda {

struct RmsNormRun {
  Walk walk;
  DeviceRows x, weight, y;
  float epsilon = 0.0F;
  float offset = 0.0F;  // added to the weight
};
void rms_norm(const RmsNormRun& run, cudaStream_t stream);

struct RmsNormGradRun {
  Walk walk;
  DeviceRows dy, x, weight;
  DeviceRows addend;  // data is null if there is none
  DeviceRows dx;
  float epsilon = 0.0F;
  float offset = 0.0F;  // added to the weight
};
void rms_norm_grad(const RmsNormGradRun& run, cudaStream_t stream);

// Also computes, in the same pass, dw (+)= the sum over rows of dy * x * root.
void rms_norm_weight_grad(const RmsNormGradRun& run, const NormWeightGrad& weight,
                          cudaStream_t stream);

}  // namespace snug::backends::cuda
