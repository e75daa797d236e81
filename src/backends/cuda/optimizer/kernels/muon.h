// The parts of Muon that are not products (program/kinds/optimizer/muon.h). Launches are
// asynchronous on the stream.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct MuonMomentumRun {
  Walk walk;
  DeviceRows gradient, momentum, direction;
  const float* factor = nullptr;  // if NaN, the direction becomes 0 and the momentum stays the same
  float share = 0.0F;             // share of the gradient in the momentum
  float gradient_share = 0.0F;    // additional share of the gradient in the direction
};
void advance_momentum(const MuonMomentumRun& run, cudaStream_t stream);

// y = x divided by a norm on the device, rounded to the type of y.
struct NormalizeRun {
  Walk walk;
  DeviceRows x, y;
  const float* norm = nullptr;
  float epsilon = 0.0F;
};
void normalize(const NormalizeRun& run, cudaStream_t stream);

struct MuonStepRun {
  Walk walk;
  DeviceRows direction, weight, master;  // the master is the weight itself if that is f32
  const float* factor = nullptr;         // if NaN, nothing changes
  const float* learning_rate = nullptr;
  float weight_decay = 0.0F;
  float rate_scale = 0.0F;
  int64_t elements = 0;  // elements beyond these stay unchanged
};
void step_muon(const MuonStepRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
