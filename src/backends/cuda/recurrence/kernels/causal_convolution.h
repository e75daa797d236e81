// The causal convolution and its gradient.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct CausalConvolutionRun {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t width = 1;
  DeviceRows x;
  DeviceRows w;  // (columns, width)
  DeviceRows y;
  const int32_t* bounds = nullptr;  // (segments, 2)
  int64_t segments = 0;
  // Of segments that go on with sequences: the program's operands; null where none do.
  const int32_t* slots = nullptr;  // (segments, 2)
  DeviceRows state{};              // (places, (width - 1) * columns)
  int32_t* taps = nullptr;         // (rows): scratch
  bool plain = false;              // without silu
};
void causal_convolution(const CausalConvolutionRun& run, cudaStream_t stream);

struct CausalConvolutionGradRun {
  CausalConvolutionRun forward;  // without y
  DeviceRows dy, dx;
  DeviceRows dw;              // without data: nobody asks for it
  float* partials = nullptr;  // scratch for dw: column_sums_bytes of (rows, columns * width)
};
void causal_convolution_grad(const CausalConvolutionGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
