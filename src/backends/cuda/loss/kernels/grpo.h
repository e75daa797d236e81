// The loss of rewarded answers and its gradient; program/kinds/loss/grpo.h defines them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

struct GrpoRun {
  const float* policy = nullptr;      // (tokens)
  const float* old = nullptr;         // (tokens), or null
  const float* reference = nullptr;   // (tokens), or null
  const float* weights = nullptr;     // (tokens)
  const float* advantages = nullptr;  // (segments)
  const int32_t* bounds = nullptr;    // (segments, 2)
  int64_t segments = 0;
  float epsilon = 0.0F;
  float epsilon_high = 0.0F;
  float delta = 0.0F;
  float beta = 0.0F;
  bool sequence = false;
  bool corrected = false;
};

// Where the results of the loss go, and the factors of what is measured.
struct GrpoResults {
  const float* inverse_tokens = nullptr;
  const float* inverse_sequences = nullptr;
  float* terms = nullptr;     // (segments, kRewardedTermCount)
  float* measures = nullptr;  // (kRewardedMeasureCount)
  float* loss = nullptr;      // (1)
};

// Two launches: what each segment adds, and the sums of that in a fixed order.
void grpo_loss(const GrpoRun& run, const GrpoResults& results, cudaStream_t stream);
// Writes dpolicy (tokens), in two launches: zeros, then what is learned.
void grpo_grad(const GrpoRun& run, float* dpolicy, int64_t tokens, cudaStream_t stream);

}  // namespace snug::backends::cuda
