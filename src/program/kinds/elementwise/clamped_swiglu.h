// clamped_swiglu: the gated activation of gpt-oss, whose gate and up take turns in a row.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: gate_up (rows, 2 ff): in column 2 j a gate g, in column 2 j + 1 its u. writes: y (rows,
// ff): with g' = min(g, limit) and u' = u within [-limit, limit], y = (u' + 1) g' sigmoid(alpha
// g').
struct ClampedSwiglu {
  float limit = 7.0F;
  float alpha = 1.702F;
  bool operator==(const ClampedSwiglu&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"limit", &ClampedSwiglu::limit}, Field{"alpha", &ClampedSwiglu::alpha}};
  static constexpr auto kGateUp = read<ClampedSwiglu>(0, "gate_up");
  static constexpr auto kY = write<ClampedSwiglu>(1, "y");
  static constexpr std::array kOperands{kGateUp, kY};
  static constexpr Traits kTraits{.recomputing = Recomputing::mlp_activation};
};

// reads: dy, gate_up. writes: dgate_up, as gate_up, whose bytes it may share. What is clamped has
// no gradient.
struct ClampedSwigluGrad {
  float limit = 7.0F;
  float alpha = 1.702F;
  bool operator==(const ClampedSwigluGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"limit", &ClampedSwigluGrad::limit},
                                             Field{"alpha", &ClampedSwigluGrad::alpha}};
  static constexpr auto kDY = read<ClampedSwigluGrad>(0, "dy");
  static constexpr auto kGateUp = read<ClampedSwigluGrad>(1, "gate_up");
  static constexpr auto kDGateUp = write<ClampedSwigluGrad>(2, "dgate_up");
  static constexpr std::array kOperands{kDY, kGateUp, kDGateUp};
  static constexpr std::array kInPlace{InPlaceOperands<ClampedSwigluGrad>{kDGateUp, kGateUp}};
};

}  // namespace snug::program
