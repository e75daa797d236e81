// The norm and its derivative. A block has a row, or several where their sums are wanted; outputs
// may take the bytes of dy or x.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/norm/kernels/norm_weight_grad.h"

namespace snug::backends::cuda {

struct RmsNormRun {
  Walk walk;
  DeviceRows x, weight, y;
  float epsilon = 0.0F;
  float offset = 0.0F;  // of the weight
};
void rms_norm(const RmsNormRun& run, cudaStream_t stream);

struct RmsNormGradRun {
  Walk walk;
  DeviceRows dy, x, weight;
  DeviceRows addend;  // data == nullptr without one
  DeviceRows dx;
  float epsilon = 0.0F;
  float offset = 0.0F;  // of the weight
};
void rms_norm_grad(const RmsNormGradRun& run, cudaStream_t stream);

// Makes dw (+)= the sum over rows of dy x root in the same pass.
void rms_norm_weight_grad(const RmsNormGradRun& run, const NormWeightGrad& weight,
                          cudaStream_t stream);

}  // namespace snug::backends::cuda
