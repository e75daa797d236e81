// Launches of the parts of Muon that are no products (program/kinds/optimizer/muon.h). Asynchronous
// on the stream.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct MuonMomentumRun {
  Walk walk;
  DeviceRows gradient, momentum, direction;
  const float* factor = nullptr;  // NaN: the direction is 0, and the momentum stays
  float share = 0.0F;             // of the gradient in the momentum
  float gradient_share = 0.0F;    // of the gradient in the direction, beyond that in the momentum
};
void advance_momentum(const MuonMomentumRun& run, cudaStream_t stream);

// Divided by a norm that the device holds, rounded to the type of y.
struct NormalizeRun {
  Walk walk;
  DeviceRows x, y;
  const float* norm = nullptr;
  float epsilon = 0.0F;
};
void normalize(const NormalizeRun& run, cudaStream_t stream);

struct MuonStepRun {
  Walk walk;
  DeviceRows direction, weight, master;  // the master: the weight itself where that is f32
  const float* factor = nullptr;         // NaN: nothing is changed
  const float* learning_rate = nullptr;
  float weight_decay = 0.0F;
  float rate_scale = 0.0F;
  int64_t elements = 0;  // beyond them nothing is changed
};
void step_muon(const MuonStepRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
