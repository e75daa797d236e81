// Element-by-element kinds: add, accumulate, add_bias, sum_rows, dropout, cast.
#pragma once

#include <cstdint>

#include "program/kinds/field.h"

namespace snug::program {

// reads: a, b of one shape. writes: c = a + b.
struct Add {
  bool operator==(const Add&) const = default;
  static constexpr std::tuple<> kFields{};
};

// reads: x; `random` (2) if stochastic. updates: y += x. Stochastic rounding as in Matmul.
struct Accumulate {
  bool stochastic = false;
  int64_t seed = 0;
  int32_t site = 0;
  bool operator==(const Accumulate&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"stochastic", &Accumulate::stochastic}, Field{"seed", &Accumulate::seed},
                 Field{"site", &Accumulate::site}};
};

// reads: x (tokens, n), bias (n). writes: y = x + bias in every row.
struct AddBias {
  bool operator==(const AddBias&) const = default;
  static constexpr std::tuple<> kFields{};
};

// reads: x (tokens, n). writes: y (n), the sum over rows; with `accumulate` updates y += sum.
struct SumRows {
  bool accumulate = false;
  bool operator==(const SumRows&) const = default;
  static constexpr auto kFields = std::tuple{Field{"accumulate", &SumRows::accumulate}};
};

// reads: x (tokens, n), `random` (2) i32 = [step, first row of the micro-batch in the step].
// writes: y = x * keep / (1 - probability). The mask is a function of (seed, step, row in the step,
// site, position in the row, column), rows being `row_length` tokens: the derivative applies it
// again, and neither batch size nor recomputation changes it.
struct Dropout {
  float probability = 0.0F;
  int64_t row_length = 1;
  int64_t seed = 0;
  int32_t site = 0;
  bool operator==(const Dropout&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"probability", &Dropout::probability}, Field{"row_length", &Dropout::row_length},
      Field{"seed", &Dropout::seed}, Field{"site", &Dropout::site}};
};

// reads: x. writes: y, the same values in another element type, rounded to nearest even.
struct Cast {
  bool operator==(const Cast&) const = default;
  static constexpr std::tuple<> kFields{};
};

}  // namespace snug::program
