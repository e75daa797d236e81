// permute, combine, scale_rows: rows on their way from tokens to experts and back. What `places`
// says stands in route.h: a permutation of all tokens * k rows.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, d), places (tokens, k) i32. writes: y (tokens * k, d): y[places[t, i]] = x[t].
struct Permute {
  bool operator==(const Permute&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Permute>(0, "x");
  static constexpr auto kPlaces = read<Permute>(1, "places");
  static constexpr auto kY = write<Permute>(2, "y");
  static constexpr std::array kOperands{kX, kPlaces, kY};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap};
};

// reads: x (tokens * k, d), places (tokens, k) i32. writes: y (tokens, d): y[t] = the sum of
// x[places[t, i]], in the order of i. The derivative of permute, and the reverse.
struct Combine {
  bool operator==(const Combine&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Combine>(0, "x");
  static constexpr auto kPlaces = read<Combine>(1, "places");
  static constexpr auto kY = write<Combine>(2, "y");
  static constexpr std::array kOperands{kX, kPlaces, kY};
};

// reads: x (tokens * k, d), weights (tokens, k), places (tokens, k) i32. writes: y, as x:
// y[places[t, i]] = weights[t, i] * x[places[t, i]]. y may share the bytes of x.
struct ScaleRows {
  bool operator==(const ScaleRows&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<ScaleRows>(0, "x");
  static constexpr auto kWeights = read<ScaleRows>(1, "weights");
  static constexpr auto kPlaces = read<ScaleRows>(2, "places");
  static constexpr auto kY = write<ScaleRows>(3, "y");
  static constexpr std::array kOperands{kX, kWeights, kPlaces, kY};
  static constexpr std::array kInPlace{InPlaceOperands<ScaleRows>{kY, kX}};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap};
};

// reads: dy, x (tokens * k, d), weights, places (tokens, k). writes: dx, as x, which may share the
// bytes of dy; dweights (tokens, k): the dot products of the rows of dy and x.
struct ScaleRowsGrad {
  bool operator==(const ScaleRowsGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDY = read<ScaleRowsGrad>(0, "dy");
  static constexpr auto kX = read<ScaleRowsGrad>(1, "x");
  static constexpr auto kWeights = read<ScaleRowsGrad>(2, "weights");
  static constexpr auto kPlaces = read<ScaleRowsGrad>(3, "places");
  static constexpr auto kDX = write<ScaleRowsGrad>(4, "dx");
  static constexpr auto kDWeights = write<ScaleRowsGrad>(5, "dweights");
  static constexpr std::array kOperands{kDY, kX, kWeights, kPlaces, kDX, kDWeights};
  static constexpr std::array kInPlace{InPlaceOperands<ScaleRowsGrad>{kDX, kDY}};
};

}  // namespace snug::program
