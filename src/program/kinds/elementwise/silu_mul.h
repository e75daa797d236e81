// silu_mul: the gated activation silu(gate) * up (SwiGLU, Shazeer 2020).
#pragma once

#include <array>
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: gate, up (tokens, ff). writes: y = gate * sigmoid(gate) * up.
struct SiluMul {
  bool operator==(const SiluMul&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kGate = read<SiluMul>(0, "gate");
  static constexpr auto kUp = read<SiluMul>(1, "up");
  static constexpr auto kY = write<SiluMul>(2, "y");
  static constexpr std::array kOperands{kGate, kUp, kY};
  static constexpr std::array kInPlace{InPlaceOperands<SiluMul>{kY, kGate},
                                       InPlaceOperands<SiluMul>{kY, kUp}};
  static constexpr Traits kTraits{.recomputing = Recomputing::mlp_activation, .is_joinable = true};
};

// reads: dy, gate, up. writes: dgate, dup, which may share the bytes of gate and up.
struct SiluMulGrad {
  bool operator==(const SiluMulGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDY = read<SiluMulGrad>(0, "dy");
  static constexpr auto kGate = read<SiluMulGrad>(1, "gate");
  static constexpr auto kUp = read<SiluMulGrad>(2, "up");
  static constexpr auto kDGate = write<SiluMulGrad>(3, "dgate");
  static constexpr auto kDUp = write<SiluMulGrad>(4, "dup");
  static constexpr std::array kOperands{kDY, kGate, kUp, kDGate, kDUp};
  static constexpr std::array kInPlace{InPlaceOperands<SiluMulGrad>{kDGate, kGate},
                                       InPlaceOperands<SiluMulGrad>{kDUp, kUp}};
};

}  // namespace snug::program
