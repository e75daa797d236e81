// relu: the rectified linear unit, and its gradient.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, n). writes: y = max(x, 0), which may share x's bytes: the gradient needs y
// alone.
struct Relu {
  bool operator==(const Relu&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Relu>(0, "x");
  static constexpr auto kY = write<Relu>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Relu>{kY, kX}};
};

// reads: dy, y. writes: dx = dy where y > 0, else 0; dx may share the bytes of either.
struct ReluGrad {
  bool operator==(const ReluGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDY = read<ReluGrad>(0, "dy");
  static constexpr auto kY = read<ReluGrad>(1, "y");
  static constexpr auto kDX = write<ReluGrad>(2, "dx");
  static constexpr std::array kOperands{kDY, kY, kDX};
  static constexpr std::array kInPlace{InPlaceOperands<ReluGrad>{kDX, kDY},
                                       InPlaceOperands<ReluGrad>{kDX, kY}};
};

}  // namespace snug::program
