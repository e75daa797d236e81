// Element-by-element kinds: add, accumulate, add_bias, sum_rows, scale, dropout, cast, zeros.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: a, b of one shape. writes: c = a + b.
struct Add {
  bool operator==(const Add&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kA = read<Add>(0, "a");
  static constexpr auto kB = read<Add>(1, "b");
  static constexpr auto kC = write<Add>(2, "c");
  static constexpr std::array kOperands{kA, kB, kC};
  static constexpr std::array kInPlace{InPlaceOperands<Add>{kC, kA}, InPlaceOperands<Add>{kC, kB}};
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
  static constexpr auto kX = read<Accumulate>(0, "x");
  static constexpr auto kRandom = read<Accumulate>(1, "random", &Accumulate::stochastic);
  static constexpr auto kY = update<Accumulate>(2, "y");
  static constexpr std::array kOperands{kX, kRandom, kY};
};

// reads: x (tokens, n), bias (n). writes: y = x + bias in every row.
struct AddBias {
  bool operator==(const AddBias&) const = default;
  static constexpr Traits kTraits{.is_joinable = true};
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<AddBias>(0, "x");
  static constexpr auto kBias = read<AddBias>(1, "bias");
  static constexpr auto kY = write<AddBias>(2, "y");
  static constexpr std::array kOperands{kX, kBias, kY};
  static constexpr std::array kInPlace{InPlaceOperands<AddBias>{kY, kX}};
};

// reads: x (tokens, n). writes: y (n), the sum over rows; with `accumulate` updates y += sum.
struct SumRows {
  bool accumulate = false;
  bool operator==(const SumRows&) const = default;
  static constexpr auto kFields = std::tuple{Field{"accumulate", &SumRows::accumulate}};
  static constexpr auto kX = read<SumRows>(0, "x");
  static constexpr auto kY = write_or_update<SumRows>(1, "y", &SumRows::accumulate);
  static constexpr std::array kOperands{kX, kY};
};

// reads: x of any shape. writes: y = factor x, rounded once. A model that multiplies by a number of
// its compute type, as Gemma its embeddings by the root of their width, has a factor that is
// rounded to that type.
struct Scale {
  float factor = 1.0F;
  bool operator==(const Scale&) const = default;
  static constexpr auto kFields = std::tuple{Field{"factor", &Scale::factor}};
  static constexpr auto kX = read<Scale>(0, "x");
  static constexpr auto kY = write<Scale>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Scale>{kY, kX}};
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
  static constexpr auto kX = read<Dropout>(0, "x");
  static constexpr auto kRandom = read<Dropout>(1, "random");
  static constexpr auto kY = write<Dropout>(2, "y");
  static constexpr std::array kOperands{kX, kRandom, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Dropout>{kY, kX}};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap};
};

// reads: x. writes: y, the same values in another element type, rounded to nearest even.
struct Cast {
  bool operator==(const Cast&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Cast>(0, "x");
  static constexpr auto kY = write<Cast>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap};
};

// writes: y (rows, n), zero everywhere: a gradient that is known to be none, whatever the values
// are that it is the gradient of.
struct Zeros {
  bool operator==(const Zeros&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kY = write<Zeros>(0, "y");
  static constexpr std::array kOperands{kY};
};

}  // namespace snug::program
