// The loss of preference pairs and its gradient; program/kinds/loss/dpo.h defines them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/preference_loss.h"

namespace snug::backends::cuda {

struct DpoRun {
  const float* policy = nullptr;     // (2 pairs)
  const float* reference = nullptr;  // (2 pairs); null: no model is compared with
  const int32_t* bounds = nullptr;   // (2 pairs, 2)
  const float* inverse_pairs = nullptr;
  const int32_t* answers = nullptr;  // (2 pairs, 2); null: losses compare sums
  int64_t pairs = 0;
  float beta = 0.0F;
  base::PreferenceLoss form = base::PreferenceLoss::sigmoid;
  float label_smoothing = 0.0F;
  float target_margin = 0.0F;
};

// Writes measures (kPreferenceMeasureCount) and loss (1), summed in a fixed order.
void dpo_loss(const DpoRun& run, float* measures, float* loss, cudaStream_t stream);
// Writes dpolicy (2 pairs).
void dpo_grad(const DpoRun& run, float* dpolicy, cudaStream_t stream);

}  // namespace snug::backends::cuda
