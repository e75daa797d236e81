// The loss of desirable and undesirable answers, the divergence estimate that it uses as reference
// point, and its gradient; program/kinds/loss/kto.h defines them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace snug::backends::cuda {

struct LabelRun {
  const float* policy = nullptr;     // (2 examples)
  const float* reference = nullptr;  // (2 examples)
  const int32_t* labels = nullptr;   // (examples)
  int64_t examples = 0;
};

struct KtoRun {
  LabelRun answers;
  const float* kl_sums = nullptr;  // (2)
  const float* inverse_pairs = nullptr;
  float beta = 0.0F;
  float desirable_weight = 0.0F;
  float undesirable_weight = 0.0F;
};

// Writes sums (2), in a fixed order.
void kl_sums(const LabelRun& run, float* sums, cudaStream_t stream);
// Writes measures (kLabelMeasureCount) and loss (1), summed in a fixed order.
void kto_loss(const KtoRun& run, const float* inverse_desirable, const float* inverse_undesirable,
              float* measures, float* loss, cudaStream_t stream);
// Writes dpolicy (2 examples).
void kto_grad(const KtoRun& run, float* dpolicy, cudaStream_t stream);

}  // namespace snug::backends::cuda
