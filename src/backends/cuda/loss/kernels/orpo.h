// The loss of the odds of pairs of answers and its derivative; program/kinds/loss/orpo.h says what
// they are.
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

// nll (2 pairs); measures (kOddsMeasureCount) and loss (1), in a fixed order.
void orpo_loss(const OrpoRun& run, const float* nll, float* measures, float* loss,
               cudaStream_t stream);
// dpolicy and dnll (2 pairs).
void orpo_grad(const OrpoRun& run, float* dpolicy, float* dnll, cudaStream_t stream);

}  // namespace snug::backends::cuda
