// What becomes of attention's scores besides a scale: a cap, and biases by a key's distance.
#pragma once

#include "backends/cuda/device.cuh"
#include "backends/cuda/kernels/attention.h"

namespace snug::backends::cuda {

inline bool are_adjusted(const AttentionForm& form) {
  return form.softcap > 0.0F || form.alibi_scale != 0.0F || form.biases.zero != nullptr;
}

// The exponent of a head's slope, without its sign, as program/kinds/attention.h has it.
__device__ inline float alibi_exponent(int32_t heads, int64_t head) {
  int32_t n = 1;
  while (2 * n <= heads) n *= 2;
  const int64_t quarters = head < n ? 2 * (head + 1) : 2 * (head - n) + 1;
  return static_cast<float>(4 * quarters) / static_cast<float>(n);
}

// The key at no distance from a query that sees these keys.
__device__ inline int32_t diagonal_of(const AttentionShape& shape, int64_t query,
                                      const TokenRange& keys) {
  const bool is_known = shape.diagonals != nullptr && query < shape.q_tokens;
  return is_known ? shape.diagonals[query] : keys.end - 1;
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
        cap_(form.softcap * log_base),
        log_base_(log_base),
        reach_(form.biases.reach) {
    if (form.alibi_scale != 0.0F)
      slope_ = form.alibi_scale * log_base * exp2f(-alibi_exponent(form.heads, head));
    if (form.biases.zero != nullptr) biases_ = form.biases.zero + head * form.biases.head_step;
  }

  // `distance`: of the key from its query's diagonal.
  __device__ AdjustedScore at(float product, int64_t distance) const {
    AdjustedScore adjusted{product * scale_, 1.0F};
    if (is_capped_) {
      const float share = tanhf(adjusted.score);
      adjusted = {share * cap_, 1.0F - share * share};
    }
    adjusted.score += slope_ * static_cast<float>(distance);
    if (biases_ != nullptr) {
      const int64_t x = distance < -reach_ ? reach_ : distance > reach_ ? -reach_ : -distance;
      adjusted.score += biases_[x] * log_base_;
    }
    return adjusted;
  }

 private:
  bool is_capped_;
  float scale_;
  float cap_;
  float log_base_;
  int64_t reach_;
  float slope_ = 0.0F;
  const float* biases_ = nullptr;  // of the head, at distance 0
};

}  // namespace snug::backends::cuda
