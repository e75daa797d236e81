// Adjustments of attention's scores after scaling: a softcap, and biases by distance.
#pragma once

#include "backends/cuda/attention/kernels/attention.h"
#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/warp_matrix.cuh"

namespace snug::backends::cuda {

inline bool is_biased(const AttentionForm& form) { return form.biases.zero != nullptr; }
inline bool are_adjusted(const AttentionForm& form) {
  return form.softcap > 0.0F || form.alibi_scale != 0.0F;
}

// The negated exponent of a head's slope, as defined in program/kinds/attention/attention.h.
__device__ inline float alibi_exponent(int32_t heads, int64_t head) {
  int32_t n = 1;
  while (2 * n <= heads) n *= 2;
  const int64_t quarters = head < n ? 2 * (head + 1) : 2 * (head - n) + 1;
  return static_cast<float>(4 * quarters) / static_cast<float>(n);
}

// The key at distance 0 from a query that sees these keys. kBiased: for a relative position bias.
template <bool kBiased>
__device__ int32_t diagonal_of(const AttentionShape& shape, int64_t query, const TokenRange& keys) {
  if constexpr (kBiased)
    return query < shape.q_tokens ? shape.diagonals[query] : 0;
  else
    return keys.end - 1;
}

// A score, and its derivative by the scaled product of query and key.
struct AdjustedScore {
  float score, slope;
};

// Adjusts the scores of one head and multiplies them by `log_base`: log2(e) where weights are
// powers of two, 1 where they are natural exponentials. kBiased: with a relative position bias,
// which has separate kernels so that others do not pay for it. kNarrow: of factors in 16 bits, next
// to whose rounding that of a quick tangent (tanh_of_power) is nothing.
template <bool kBiased, bool kNarrow = false>
class ScoreAdjustment {
 public:
  __device__ ScoreAdjustment(const AttentionForm& form, int64_t head, float log_base)
      : is_capped_(form.softcap > 0.0F),
        scale_(is_capped_ ? form.scale / form.softcap * kOfTangent : form.scale * log_base),
        cap_(form.softcap * log_base) {
    if constexpr (kBiased) {
      biases_ = form.biases.zero + head * form.biases.head_step;
      reach_ = form.biases.reach;
      log_base_ = log_base;
    }
    if (form.alibi_scale == 0.0F) return;
    slope_ = form.alibi_scale * log_base * exp2f(-alibi_exponent(form.heads, head));
  }

  // `distance` is the distance of the key from its query's diagonal.
  __device__ AdjustedScore at(float product, int64_t distance) const {
    AdjustedScore adjusted{product * scale_, 1.0F};
    if (is_capped_) {
      const float share = kNarrow ? tanh_of_power(adjusted.score) : tanhf(adjusted.score);
      adjusted = {share * cap_, 1.0F - share * share};
    }
    adjusted.score += slope_ * static_cast<float>(distance);
    if constexpr (kBiased) {
      const int64_t x = distance < -reach_ ? reach_ : distance > reach_ ? -reach_ : -distance;
      adjusted.score += biases_[x] * log_base_;
    }
    return adjusted;
  }

 private:
  // Of the tangent's argument: twice log2(e) for tanh_of_power.
  static constexpr float kOfTangent = kNarrow ? 2.8853900817779268F : 1.0F;

  bool is_capped_;
  float scale_;
  float cap_;
  float slope_ = 0.0F;
  const float* biases_ = nullptr;  // points to distance 0 in this head's table
  int64_t reach_ = 0;
  float log_base_ = 1.0F;
};

}  // namespace snug::backends::cuda
