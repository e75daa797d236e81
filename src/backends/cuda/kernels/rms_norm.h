// The norm and its derivative. A block has a row; outputs may take the bytes of dy or x.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/column_sums.h"

namespace snug::backends::cuda {

struct RmsNormRun {
  Walk walk;
  Operand x, weight, y;
  float epsilon = 0.0F;
};
void rms_norm(const RmsNormRun& run, cudaStream_t stream);

struct RmsNormGradRun {
  Walk walk;
  Operand dy, x, weight;
  Operand addend;  // data == nullptr without one
  Operand dx;
  float epsilon = 0.0F;
};
void rms_norm_grad(const RmsNormGradRun& run, cudaStream_t stream);

// sums.y (+)= the sum over rows of dy x root. roots: scratch, a float a row. Before rms_norm_grad,
// which may overwrite dy or x.
void rms_norm_weight_grad(const RmsNormGradRun& run, float* roots, const ColumnSumsRun& sums,
                          cudaStream_t stream);

}  // namespace snug::backends::cuda
