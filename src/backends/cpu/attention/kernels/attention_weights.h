// Turns scores into weights, and gradients of weights into gradients of scores, with keys as rows.
// For the backward pass of attention only.
#pragma once

#include "backends/cpu/attention/kernels/attention_blocks.h"
#include "backends/cpu/attention/kernels/score_adjustment.h"
#include "backends/cpu/attention/kernels/square_product.h"
#include "backends/cpu/kernels/exp2.h"

namespace snug::backends::cpu::SNUG_ISA {

// Stores thirty-two columns of a row in order.
SNUG_INLINE void store_both(float* out, const Float16Lanes (&x)[2]) {
  store(out, x[0]);
  store(out + kLanes, x[1]);
}
SNUG_INLINE void store_both(uint16_t* out, const Float16Lanes (&x)[2]) {
#if defined(__AVX512BF16__)
  const auto both =
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(x[1]), reinterpret_cast<__m512>(x[0]));
  __builtin_memcpy(out, &both, sizeof both);
#else
  store(out, x[0]);
  store(out + kLanes, x[1]);
#endif
}

// Stores thirty-two columns of two rows, read from what store_both wrote, as units along the rows.
// The columns are in the order that one instruction for sixteen pairs leaves; column_of_place gives
// that order. fp32 needs no units.
SNUG_INLINE void store_units(float*, const float*, const float*) {}
SNUG_INLINE void store_units(uint16_t* out, const uint16_t* even, const uint16_t* odd) {
#if defined(__AVX512BF16__)
  const __m512i rows[2] = {_mm512_loadu_si512(even), _mm512_loadu_si512(odd)};
  constexpr __mmask32 kAll = ~__mmask32{0};
  _mm512_storeu_si512(out, _mm512_maskz_unpacklo_epi16(kAll, rows[0], rows[1]));
  _mm512_storeu_si512(out + kSquare, _mm512_maskz_unpackhi_epi16(kAll, rows[0], rows[1]));
#else
  static_cast<void>(out), static_cast<void>(even), static_cast<void>(odd);
#endif
}

// The column, of 32, that store_units puts at `place`.
template <typename Compute>
constexpr int64_t column_of_place(int64_t place) {
  if (sizeof(Compute) == 4) return place;
  return place % 16 / 4 * 8 + place / 16 * 4 + place % 4;
}

template <typename Compute>
struct Weighing {
  const float *scores, *d_weights;  // (kSquare, kSquare); the mean is subtracted from d_weights
  const float* lse;                 // one number per column, multiplied by log2(e)
  float factor;                     // multiplies scores such that they become exponents of two
  Compute *weights, *d_scores;      // (kSquare, stride)
  int64_t stride;
  Compute* units;             // d_scores as units along keys: (kSquare, kSquare)
  int64_t key;                // the first key
  const Seen<kSquare>* seen;  // null: all keys are seen
  // Null: scores are only multiplied by `factor`.
  const ScoreAdjustment* adjustment;
  int64_t query;                  // the query of the first column
  DistanceTable<float> d_biases;  // the table of this head; null if not wanted
};

// Adds the gradients of sixteen scores, of queries from distance x on, to the table.
SNUG_INLINE void add_to(const DistanceTable<float>& table, int64_t x, Float16Lanes d_scores) {
  float* sums = table.zero + place_in(table, x);
  store(sums, load(sums) + d_scores);
}

// Processes two rows, starting at `row`.
template <typename Compute>
SNUG_INLINE void weigh_pair(const Weighing<Compute>& w, int64_t row, const Seen<kSquare>* seen,
                            const ScoreAdjustment* adjustment) {
#pragma GCC unroll 2
  for (int64_t odd = 0; odd < 2; ++odd) {
    const int64_t from = (row + odd) * kSquare;
    Float16Lanes weights[2];
    Float16Lanes d_scores[2];
#pragma GCC unroll 2
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t lane = half * kLanes;
      AdjustedScores adjusted;
      if (adjustment == nullptr)
        adjusted.score = load(w.scores + from + lane) * w.factor;
      else
        adjusted = adjustment->at(load(w.scores + from + lane),
                                  adjustment->of_key(w.key + row + odd, w.query + lane));
      weights[half] = exp2_of_weight<Compute>(adjusted.score - load(w.lse + lane));
      if (seen != nullptr)
        weights[half] = select(sees(*seen, lane, w.key + row + odd), weights[half], Float16Lanes{});
      d_scores[half] = weights[half] * load(w.d_weights + from + lane);
      if (adjustment == nullptr) continue;
      if (w.d_biases.zero != nullptr)
        add_to(w.d_biases, adjustment->distance(w.key + row + odd, w.query + lane), d_scores[half]);
      d_scores[half] *= adjusted.slope;
    }
    store_both(w.weights + (row + odd) * w.stride, weights);
    store_both(w.d_scores + (row + odd) * w.stride, d_scores);
  }
  const Compute* d_scores = w.d_scores + row * w.stride;
  store_units(w.units + row * kSquare, d_scores, d_scores + w.stride);
}

template <typename Compute>
SNUG_INLINE void weigh(const Weighing<Compute>& w) {
  if (w.adjustment != nullptr)
    for (int64_t row = 0; row < kSquare; row += 2) weigh_pair(w, row, w.seen, w.adjustment);
  else if (w.seen == nullptr)
    for (int64_t row = 0; row < kSquare; row += 2) weigh_pair(w, row, nullptr, nullptr);
  else
    for (int64_t row = 0; row < kSquare; row += 2) weigh_pair(w, row, w.seen, nullptr);
}

}  // namespace snug::backends::cpu::SNUG_ISA
