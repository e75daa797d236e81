// What becomes of attention's scores besides a scale: a cap, and the bias of a key's distance.
#pragma once

#include "backends/cuda/device.cuh"
#include "backends/cuda/kernels/attention.h"

namespace snug::backends::cuda {

inline bool are_adjusted(const AttentionForm& form) {
  return form.softcap > 0.0F || form.alibi_scale != 0.0F;
}

// The exponent of a head's slope, without its sign, as program/kinds/attention.h has it.
__device__ inline float alibi_exponent(int32_t heads, int64_t head) {
  int32_t n = 1;
  while (2 * n <= heads) n *= 2;
  const int64_t quarters = head < n ? 2 * (head + 1) : 2 * (head - n) + 1;
  return static_cast<float>(4 * quarters) / static_cast<float>(n);
}

// A score, and its slope in the scaled product of query and key.
struct AdjustedScore {
  float score, slope;
};

// Of the scores of one head, in the base whose logarithm this is (1: e).
class ScoreAdjustment {
 public:
  __device__ ScoreAdjustment(const AttentionForm& form, int64_t head, float log_base)
      : is_capped_(form.softcap > 0.0F),
        scale_(is_capped_ ? form.scale / form.softcap : form.scale * log_base),
        cap_(form.softcap * log_base) {
    if (form.alibi_scale == 0.0F) return;
    bias_ = form.alibi_scale * log_base * exp2f(-alibi_exponent(form.heads, head));
  }

  // `distance`: of the key from its query's diagonal, which is the last key that the query sees,
  // since attention with a bias is causal.
  __device__ AdjustedScore at(float product, int64_t distance) const {
    AdjustedScore adjusted{product * scale_, 1.0F};
    if (is_capped_) {
      const float share = tanhf(adjusted.score);
      adjusted = {share * cap_, 1.0F - share * share};
    }
    adjusted.score += bias_ * static_cast<float>(distance);
    return adjusted;
  }

 private:
  bool is_capped_;
  float scale_;
  float cap_;
  float bias_ = 0.0F;
};

}  // namespace snug::backends::cuda
