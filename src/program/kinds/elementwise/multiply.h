// multiply: gate * up, element by element, and its gradient.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: gate, up (tokens, n). writes: y = gate * up.
struct Multiply {
  bool operator==(const Multiply&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kGate = read<Multiply>(0, "gate");
  static constexpr auto kUp = read<Multiply>(1, "up");
  static constexpr auto kY = write<Multiply>(2, "y");
  static constexpr std::array kOperands{kGate, kUp, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Multiply>{kY, kGate},
                                       InPlaceOperands<Multiply>{kY, kUp}};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap};
};

// reads: dy, gate, up. writes: dgate, dup, which may share the bytes of gate and up.
struct MultiplyGrad {
  bool operator==(const MultiplyGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDY = read<MultiplyGrad>(0, "dy");
  static constexpr auto kGate = read<MultiplyGrad>(1, "gate");
  static constexpr auto kUp = read<MultiplyGrad>(2, "up");
  static constexpr auto kDGate = write<MultiplyGrad>(3, "dgate");
  static constexpr auto kDUp = write<MultiplyGrad>(4, "dup");
  static constexpr std::array kOperands{kDY, kGate, kUp, kDGate, kDUp};
  static constexpr std::array kInPlace{InPlaceOperands<MultiplyGrad>{kDGate, kGate},
                                       InPlaceOperands<MultiplyGrad>{kDUp, kUp}};
};

}  // namespace snug::program
