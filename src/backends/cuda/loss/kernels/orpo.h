// The odds ratio loss of preference pairs and its gradient; program/kinds/loss/orpo.h defines them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

struct OrpoRun {
  const float* policy = nullptr;          // (2 pairs)
  const int32_t* bounds = nullptr;        // (2 pairs, 2)
  const float* inverse_pairs = nullptr;   // (1)
  const float* inverse_tokens = nullptr;  // (1)
  int64_t pairs = 0;
  float beta = 0.0F;
};

// Takes nll (2 pairs); writes measures (kOddsMeasureCount) and loss (1), summed in a fixed order.
void orpo_loss(const OrpoRun& run, const float* nll, float* measures, float* loss,
               cudaStream_t stream);
// Writes dpolicy and dnll (2 pairs).
void orpo_grad(const OrpoRun& run, float* dpolicy, float* dnll, cudaStream_t stream);

}  // namespace snug::backends::cuda
