// Adjustments of attention's scores after scaling, for kernel files only: a softcap, and biases by
// distance. Scores are exponents of two.
#pragma once

#include "backends/cpu/attention/kernels/attention_blocks.h"
#include "backends/cpu/kernels/exp2.h"
#include "backends/cpu/kernels/tanh.h"

namespace snug::backends::cpu::SNUG_ISA {

// The scores of sixteen pairs of query and key, and the derivatives of the scores by the scaled
// products.
struct AdjustedScores {
  Float16Lanes score, slope;
};

SNUG_INLINE bool are_adjusted(const AttentionForm& form) {
  return form.softcap > 0.0F || form.slopes != nullptr || form.biases.zero != nullptr;
}

// The index at which sixteen consecutive entries of a table, from distance x on, are read; out of
// range it is clamped to entries with the same numbers.
template <typename T>
SNUG_INLINE int64_t place_in(const DistanceTable<T>& table, int64_t x) {
  return larger_of(-distance_table_side(table.reach), smaller_of(x, table.reach));
}

class ScoreAdjustment {
 public:
  // Adjusts the scores of head `head` of the group.
  ScoreAdjustment(const AttentionForm& form, int64_t head)
      : is_capped_(form.softcap > 0.0F),
        cap_(form.softcap * kLog2OfE),
        scale_(is_capped_ ? form.scale / form.softcap : form.scale * kLog2OfE),
        slope_(form.slopes == nullptr ? 0.0F : form.slopes[head] * kLog2OfE),
        biases_(form.biases),
        diagonal_(form.causal ? form.keys - form.queries : 0) {
    if (biases_.zero != nullptr) biases_.zero += head * biases_.head_step;
  }

  // `biases` belong to the same pairs.
  AdjustedScores at(Float16Lanes products, Float16Lanes biases) const {
    AdjustedScores adjusted{products * scale_, splat(1.0F)};
    if (is_capped_) {
      const Float16Lanes share = tanh(adjusted.score);
      adjusted = {share * cap_, 1.0F - share * share};
    }
    adjusted.score += biases;
    return adjusted;
  }

  // The distance from a key to a query after it; negative only where a causal query does not see
  // the key.
  int64_t distance(int64_t key, int64_t query) const { return query + diagonal_ - key; }

  // The biases of one key for sixteen queries, starting at `query`.
  Float16Lanes of_key(int64_t key, int64_t query) const {
    const int64_t x = distance(key, query);
    Float16Lanes biases = (static_cast<float>(x) + lane_numbers()) * -slope_;
    if (biases_.zero != nullptr) biases += load(biases_.zero + place_in(biases_, x));
    return biases;
  }
  // The biases of sixteen keys, starting at `key`, for one query.
  Float16Lanes of_keys(int64_t key, int64_t query) const {
    const int64_t x = distance(key, query);
    Float16Lanes biases = (lane_numbers() - static_cast<float>(x)) * slope_;
    if (biases_.zero != nullptr) biases += turned(load(biases_.zero + place_in(biases_, x - 15)));
    return biases;
  }

 private:
  SNUG_INLINE Float16Lanes lane_numbers() {
    return Float16Lanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  }
  SNUG_INLINE Float16Lanes turned(Float16Lanes x) {
    return lanes_as<Float16Lanes>(__builtin_shufflevector(whole(x), whole(x), 15, 14, 13, 12, 11,
                                                          10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  }

  bool is_capped_;
  float cap_;
  float scale_;
  float slope_;
  DistanceTable<const float> biases_;
  int64_t diagonal_;
};

}  // namespace snug::backends::cpu::SNUG_ISA
