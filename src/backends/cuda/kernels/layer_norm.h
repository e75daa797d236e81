// The norm and its derivative. A block has a row, or several where their sums are wanted; outputs
// may take the bytes of dy or x.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/column_sums.h"

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

// Makes dw (+)= the sum over rows of dy times x normalised in the same pass: a sum for each block
// of rows, then sum_rows of those. Bits depend on the shape alone.
struct LayerNormWeightGrad {
  float* partials = nullptr;         // (norm_blocks, columns)
  float* column_partials = nullptr;  // column_sums_bytes of those
  DeviceRows dw;                     // (columns)
  bool accumulate = false;
};
void layer_norm_weight_grad(const LayerNormGradRun& run, const LayerNormWeightGrad& weight,
                            cudaStream_t stream);

}  // namespace snug::backends::cuda
