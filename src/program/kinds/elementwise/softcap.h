// softcap: bounds logits smoothly, c tanh(x / c) (Gemma 2), and its gradient. Caps of attention's
// scores and of a linear cross-entropy's logits are attributes of those kinds.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, n). writes: y = cap tanh(x / cap), which may share x's bytes: the gradient
// needs y alone.
struct Softcap {
  float cap = 1.0F;
  bool operator==(const Softcap&) const = default;
  static constexpr auto kFields = std::tuple{Field{"cap", &Softcap::cap}};
  static constexpr auto kX = read<Softcap>(0, "x");
  static constexpr auto kY = write<Softcap>(1, "y");
  static constexpr std::array kOperands{kX, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Softcap>{kY, kX}};
};

// reads: dy, y. writes: dx = dy (1 - (y / cap)^2), which may share the bytes of either.
struct SoftcapGrad {
  float cap = 1.0F;
  bool operator==(const SoftcapGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"cap", &SoftcapGrad::cap}};
  static constexpr auto kDY = read<SoftcapGrad>(0, "dy");
  static constexpr auto kY = read<SoftcapGrad>(1, "y");
  static constexpr auto kDX = write<SoftcapGrad>(2, "dx");
  static constexpr std::array kOperands{kDY, kY, kDX};
  static constexpr std::array kInPlace{InPlaceOperands<SoftcapGrad>{kDX, kDY},
                                       InPlaceOperands<SoftcapGrad>{kDX, kY}};
};

}  // namespace snug::program
