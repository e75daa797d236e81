// Adafactor for one tensor. Values that change from step to step are read on the device; a NaN
// clipping factor leaves everything unchanged.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/cuda/kernels/device_rows.h"

namespace snug::backends::cuda {

struct AdafactorRun {
  // A matrix; a vector is one row whose column moments are its moments.
  int64_t rows = 0;
  int64_t columns = 0;
  bool factored = false;
  DeviceRows gradient;
  DeviceRows weight;
  float* master = nullptr;      // the weight itself if that is f32
  float* row_moment = nullptr;  // only for a matrix
  float* column_moment = nullptr;
  float* scratch = nullptr;  // adafactor_scratch_bytes (sizes.h)
  const float* factor = nullptr;
  const float* learning_rate = nullptr;
  const int32_t* step = nullptr;
  float decay_rate = 0.0F;
  float epsilon = 0.0F;
  float clip_threshold = 0.0F;
  float weight_decay = 0.0F;
};

void adafactor(const AdafactorRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
