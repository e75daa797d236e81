// The norm and its derivative. A block has a row, or several where their sums are wanted; outputs
// may take the bytes of dy or x.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/norm/kernels/norm_weight_grad.h"

namespace snug::backends::cuda {

struct LayerNormRun {
  Walk walk;
  DeviceRows x, weight;
  DeviceRows bias;  // data == nullptr without one
  DeviceRows y;
  float epsilon = 0.0F;
};
void layer_norm(const LayerNormRun& run, cudaStream_t stream);

struct LayerNormGradRun {
  Walk walk;
  DeviceRows dy, x, weight;
  DeviceRows addend;  // data == nullptr without one
  DeviceRows dx;
  float epsilon = 0.0F;
};
void layer_norm_grad(const LayerNormGradRun& run, cudaStream_t stream);

// Makes dw (+)= the sum over rows of dy times x normalised in the same pass.
void layer_norm_weight_grad(const LayerNormGradRun& run, const NormWeightGrad& weight,
                            cudaStream_t stream);

}  // namespace snug::backends::cuda
