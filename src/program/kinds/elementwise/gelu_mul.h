// gelu_mul: the gated activation of Gemma's and T5's feed-forward layers (GEGLU, Shazeer 2020).
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: gate, up (tokens, n). writes: y = gelu(gate) * up, which may share the bytes of either.
// `tanh` selects the form of gelu, as in the kind gelu.
struct GeluMul {
  bool tanh = false;
  bool operator==(const GeluMul&) const = default;
  static constexpr auto kFields = std::tuple{Field{"tanh", &GeluMul::tanh}};
  static constexpr auto kGate = read<GeluMul>(0, "gate");
  static constexpr auto kUp = read<GeluMul>(1, "up");
  static constexpr auto kY = write<GeluMul>(2, "y");
  static constexpr std::array kOperands{kGate, kUp, kY};
  static constexpr std::array kInPlace{InPlaceOperands<GeluMul>{kY, kGate},
                                       InPlaceOperands<GeluMul>{kY, kUp}};
  static constexpr Traits kTraits{.recomputing = Recomputing::mlp_activation};
};

// reads: dy, gate, up. writes: dgate, dup; dgate may share the bytes of gate and dup those of up.
struct GeluMulGrad {
  bool tanh = false;
  bool operator==(const GeluMulGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"tanh", &GeluMulGrad::tanh}};
  static constexpr auto kDY = read<GeluMulGrad>(0, "dy");
  static constexpr auto kGate = read<GeluMulGrad>(1, "gate");
  static constexpr auto kUp = read<GeluMulGrad>(2, "up");
  static constexpr auto kDGate = write<GeluMulGrad>(3, "dgate");
  static constexpr auto kDUp = write<GeluMulGrad>(4, "dup");
  static constexpr std::array kOperands{kDY, kGate, kUp, kDGate, kDUp};
  static constexpr std::array kInPlace{InPlaceOperands<GeluMulGrad>{kDGate, kGate},
                                       InPlaceOperands<GeluMulGrad>{kDUp, kUp}};
};

}  // namespace snug::program
