// The loss of answers that are desirable or undesirable, the estimate of a divergence that it is
// compared with, and its derivative; program/kinds/loss/kto.h says what they are.
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

// sums (2), in a fixed order.
void kl_sums(const LabelRun& run, float* sums, cudaStream_t stream);
// measures (kLabelMeasureCount) and loss (1), in a fixed order.
void kto_loss(const KtoRun& run, const float* inverse_desirable, const float* inverse_undesirable,
              float* measures, float* loss, cudaStream_t stream);
// dpolicy (2 examples).
void kto_grad(const KtoRun& run, float* dpolicy, cudaStream_t stream);

}  // namespace snug::backends::cuda
