// gelu: the Gaussian error linear unit (Hendrycks and Gimpel 2016), and its gradient.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, n). writes: y = x Phi(x), Phi being the normal distribution function; with
// `tanh` (gelu_pytorch_tanh of transformers) y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
struct Gelu {
  bool tanh = false;
  bool operator==(const Gelu&) const = default;
  static constexpr auto kFields = std::tuple{Field{"tanh", &Gelu::tanh}};
  static constexpr auto kX = read<Gelu>(0, "x");
  static constexpr auto kY = write<Gelu>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Gelu>{kY, kX}};
  static constexpr Traits kTraits{.recomputing = Recomputing::mlp_activation};
};

// reads: dy, x. writes: dx = dy gelu'(x), which may share the bytes of either.
struct GeluGrad {
  bool tanh = false;
  bool operator==(const GeluGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"tanh", &GeluGrad::tanh}};
  static constexpr auto kDY = read<GeluGrad>(0, "dy");
  static constexpr auto kX = read<GeluGrad>(1, "x");
  static constexpr auto kDX = write<GeluGrad>(2, "dx");
  static constexpr std::array kOperands{kDY, kX, kDX};
  static constexpr std::array kInPlace{InPlaceOperands<GeluGrad>{kDX, kDY},
                                       InPlaceOperands<GeluGrad>{kDX, kX}};
};

}  // namespace snug::program
