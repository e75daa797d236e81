// scale_columns: y = x * gain, or x * gain / divisor, column by column, computed in fp32 and
// rounded once. Where there are fewer gains than columns, n of m gains, each is that of n / m
// neighbouring columns: one of a head, or one of all. The divisor is a measurement, constant to
// derivatives.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, n), gain (m), n a multiple of m; with `divided` divisor (m), f32. writes: y
// (tokens, n).
struct ScaleColumns {
  bool divided = false;
  bool operator==(const ScaleColumns&) const = default;
  static constexpr auto kFields = std::tuple{Field{"divided", &ScaleColumns::divided}};
  static constexpr auto kX = read<ScaleColumns>(0, "x");
  static constexpr auto kGain = read<ScaleColumns>(1, "gain");
  static constexpr auto kDivisor = read<ScaleColumns>(2, "divisor", &ScaleColumns::divided);
  static constexpr auto kY = write<ScaleColumns>(3, "y");
  static constexpr std::array kOperands{kX, kGain, kDivisor, kY};
  static constexpr std::array kInPlace{InPlaceOperands<ScaleColumns>{kY, kX}};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap, .passes_on = kX.name};
};

// reads: dy, x (tokens, n); with `divided` divisor (m). writes: dgain (m), the sum over tokens and
// the columns of a gain of dy * x [/ divisor]; with `accumulate` it is updated instead. The
// derivative in x is scale_columns of dy.
struct ColumnGainGrad {
  bool divided = false;
  bool accumulate = false;
  bool operator==(const ColumnGainGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"divided", &ColumnGainGrad::divided},
                                             Field{"accumulate", &ColumnGainGrad::accumulate}};
  static constexpr auto kDY = read<ColumnGainGrad>(0, "dy");
  static constexpr auto kX = read<ColumnGainGrad>(1, "x");
  static constexpr auto kDivisor = read<ColumnGainGrad>(2, "divisor", &ColumnGainGrad::divided);
  static constexpr auto kDGain =
      write_or_update<ColumnGainGrad>(3, "dgain", &ColumnGainGrad::accumulate);
  static constexpr std::array kOperands{kDY, kX, kDivisor, kDGain};
};

// How many neighbouring columns one of `gains` gains has.
constexpr int64_t columns_of_gain(int64_t columns, int64_t gains) { return columns / gains; }

}  // namespace snug::program
