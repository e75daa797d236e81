// sigmoid_mul: sigmoid(gate) * up, by which a gate opens and closes what attention gives.
#pragma once

#include <array>
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: gate, up (tokens, n). writes: y = sigmoid(gate) * up.
struct SigmoidMul {
  bool operator==(const SigmoidMul&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kGate = read<SigmoidMul>(0, "gate");
  static constexpr auto kUp = read<SigmoidMul>(1, "up");
  static constexpr auto kY = write<SigmoidMul>(2, "y");
  static constexpr std::array kOperands{kGate, kUp, kY};
  static constexpr std::array kInPlace{InPlaceOperands<SigmoidMul>{kY, kGate},
                                       InPlaceOperands<SigmoidMul>{kY, kUp}};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap};
};

// reads: dy, gate, up. writes: dgate, dup, which may share the bytes of gate and up.
struct SigmoidMulGrad {
  bool operator==(const SigmoidMulGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDY = read<SigmoidMulGrad>(0, "dy");
  static constexpr auto kGate = read<SigmoidMulGrad>(1, "gate");
  static constexpr auto kUp = read<SigmoidMulGrad>(2, "up");
  static constexpr auto kDGate = write<SigmoidMulGrad>(3, "dgate");
  static constexpr auto kDUp = write<SigmoidMulGrad>(4, "dup");
  static constexpr std::array kOperands{kDY, kGate, kUp, kDGate, kDUp};
  static constexpr std::array kInPlace{InPlaceOperands<SigmoidMulGrad>{kDGate, kGate},
                                       InPlaceOperands<SigmoidMulGrad>{kDUp, kUp}};
};

}  // namespace snug::program
