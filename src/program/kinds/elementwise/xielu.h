// xielu: the expanded integral of the exponential linear unit (Huang and Schlag 2024), an
// activation with two learned numbers, and its derivatives.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, n); alpha_p and alpha_n (1), the learned numbers before softplus, which is
// s(a) = log(1 + exp(a)); beta and epsilon (), f32, constants of the model. writes: y (tokens, n) =
//   s(alpha_p) x^2 + beta x                                                  where x > 0,
//   (beta + s(alpha_n)) (exp(min(x, epsilon)) - 1 - x) + beta x              elsewhere.
// epsilon is a negative number close to 0. y may share x's bytes.
struct Xielu {
  bool operator==(const Xielu&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<Xielu>(0, "x");
  static constexpr auto kAlphaP = read<Xielu>(1, "alpha_p");
  static constexpr auto kAlphaN = read<Xielu>(2, "alpha_n");
  static constexpr auto kBeta = read<Xielu>(3, "beta");
  static constexpr auto kEpsilon = read<Xielu>(4, "epsilon");
  static constexpr auto kY = write<Xielu>(5, "y");
  static constexpr std::array kOperands{kX, kAlphaP, kAlphaN, kBeta, kEpsilon, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Xielu>{kY, kX}};
  static constexpr Traits kTraits{.recomputing = Recomputing::mlp_activation};
};

// reads: dy, and what xielu reads. writes: dx = dy times the derivative in x, which may share the
// bytes of dy or x. Between epsilon and 0 that is beta - (beta + s(alpha_n)), as torch.min has it.
struct XieluGrad {
  bool operator==(const XieluGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDY = read<XieluGrad>(0, "dy");
  static constexpr auto kX = read<XieluGrad>(1, "x");
  static constexpr auto kAlphaP = read<XieluGrad>(2, "alpha_p");
  static constexpr auto kAlphaN = read<XieluGrad>(3, "alpha_n");
  static constexpr auto kBeta = read<XieluGrad>(4, "beta");
  static constexpr auto kEpsilon = read<XieluGrad>(5, "epsilon");
  static constexpr auto kDX = write<XieluGrad>(6, "dx");
  static constexpr std::array kOperands{kDY, kX, kAlphaP, kAlphaN, kBeta, kEpsilon, kDX};
  static constexpr std::array kInPlace{InPlaceOperands<XieluGrad>{kDX, kDY},
                                       InPlaceOperands<XieluGrad>{kDX, kX}};
};

// reads: x (tokens, n), alpha (1), epsilon () f32. writes: slope (tokens, n), the derivative of
// each y of xielu in alpha_p, or with `negative` in alpha_n. It may share x's bytes. The gradient
// of the number is the sum of dy * slope, which column_gain_grad makes.
struct XieluSlope {
  bool negative = false;
  bool operator==(const XieluSlope&) const = default;
  static constexpr auto kFields = std::tuple{Field{"negative", &XieluSlope::negative}};
  static constexpr auto kX = read<XieluSlope>(0, "x");
  static constexpr auto kAlpha = read<XieluSlope>(1, "alpha");
  static constexpr auto kEpsilon = read<XieluSlope>(2, "epsilon");
  static constexpr auto kSlope = write<XieluSlope>(3, "slope");
  static constexpr std::array kOperands{kX, kAlpha, kEpsilon, kSlope};
  static constexpr std::array kInPlace{InPlaceOperands<XieluSlope>{kSlope, kX}};
};

}  // namespace snug::program
