// The gates of the gated delta rule and their gradient.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct DeltaGatesRun {
  int64_t tokens = 0;
  int64_t heads = 0;
  DeviceRows a, b, a_log, dt_bias;
  DeviceRows g, beta;
};
void delta_gates(const DeltaGatesRun& run, cudaStream_t stream);

struct DeltaGatesGradRun {
  DeltaGatesRun forward;  // without g and beta
  DeviceRows dg, dbeta, da, db;
  DeviceRows da_log, ddt_bias;  // without data: nobody asks for them
};
void delta_gates_grad(const DeltaGatesGradRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
