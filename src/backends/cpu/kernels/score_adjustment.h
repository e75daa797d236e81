// What becomes of attention's scores besides a scale, for kernel files only: a cap, and the bias of
// a key's distance. Scores are powers of two.
#pragma once

#include "backends/cpu/kernels/attention_blocks.h"
#include "backends/cpu/kernels/exp2.h"
#include "backends/cpu/kernels/tanh.h"

namespace snug::backends::cpu::SNUG_ISA {

// Scores of sixteen pairs of a query and a key, and their slopes in what they are made of.
struct AdjustedScores {
  Float16Lanes score, slope;
};

SNUG_INLINE bool are_adjusted(const AttentionForm& form) {
  return form.softcap > 0.0F || form.slopes != nullptr;
}

class ScoreAdjustment {
 public:
  // Of a head of the group.
  ScoreAdjustment(const AttentionForm& form, int64_t head)
      : is_capped_(form.softcap > 0.0F),
        cap_(form.softcap * kLog2OfE),
        scale_(is_capped_ ? form.scale / form.softcap : form.scale * kLog2OfE),
        bias_(form.slopes == nullptr ? 0.0F : form.slopes[head] * kLog2OfE),
        diagonal_(form.keys - form.queries) {}

  // `distance`: of the keys from the diagonal of their query (attention.h), which is 0 or below
  // where the query sees the key.
  AdjustedScores at(Float16Lanes products, Float16Lanes distance) const {
    AdjustedScores adjusted{products * scale_, splat(1.0F)};
    if (is_capped_) {
      const Float16Lanes share = tanh(adjusted.score);
      adjusted = {share * cap_, 1.0F - share * share};
    }
    adjusted.score += distance * bias_;
    return adjusted;
  }

  // Of one key from sixteen queries, from `query` on.
  Float16Lanes distance_of_key(int64_t key, int64_t query) const {
    return static_cast<float>(key - query - diagonal_) - lane_numbers();
  }
  // Of sixteen keys, from `key` on, from one query.
  Float16Lanes distance_of_keys(int64_t key, int64_t query) const {
    return static_cast<float>(key - query - diagonal_) + lane_numbers();
  }

 private:
  SNUG_INLINE Float16Lanes lane_numbers() {
    return Float16Lanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  }

  bool is_capped_;
  float cap_;
  float scale_;
  float bias_;
  int64_t diagonal_;
};

}  // namespace snug::backends::cpu::SNUG_ISA
