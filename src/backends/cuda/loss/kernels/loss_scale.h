// Loss scaling: multiplies or divides numbers by a scale on the device, and computes the clip
// factor and the next scale.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

// y[i] = scale * x[i], or x[i] / scale; y may be x.
struct ScaleByRun {
  const float* x = nullptr;
  const float* scale = nullptr;
  float* y = nullptr;
  int64_t count = 0;
  bool divides = false;
};
void scale_by(const ScaleByRun& run, cudaStream_t stream);

// program/kinds/loss/loss_scale.h defines it. counts: kLossScaleCounts integers.
struct ScaledClipRun {
  const float* scaled_norm = nullptr;
  float* norm = nullptr;
  float* factor = nullptr;
  float* scale = nullptr;
  float* counts = nullptr;
  float max_norm = 0.0F;
  float window = 0.0F;
  float hysteresis = 1.0F;
  float least = 0.0F;
};
void scaled_clip_factor(const ScaledClipRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
