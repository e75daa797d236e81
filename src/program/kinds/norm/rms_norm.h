// rms_norm: y = x / sqrt(mean(x^2) + epsilon) * (w + offset), computed in fp32 and rounded once
// (Zhang and Sennrich 2019). Gemma's weights are stored less one, with an offset of 1.
#pragma once

#include <array>
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, d), w (d). writes: y (tokens, d).
struct RmsNorm {
  float epsilon = 1e-5F;
  float offset = 0.0F;  // of the weight
  bool operator==(const RmsNorm&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"epsilon", &RmsNorm::epsilon}, Field{"offset", &RmsNorm::offset}};
  static constexpr auto kX = read<RmsNorm>(0, "x");
  static constexpr auto kW = read<RmsNorm>(1, "w");
  static constexpr auto kY = write<RmsNorm>(2, "y");
  static constexpr std::array kOperands{kX, kW, kY};
  static constexpr std::array kInPlace{InPlaceOperands<RmsNorm>{kY, kX}};
  static constexpr Traits kTraits{
      .recomputing = Recomputing::cheap, .is_joinable = true, .passes_on = kX.name};
};

// reads: dy, x (tokens, d), w (d), then an addend (tokens, d) if `addend`. writes: dx (+ addend),
// and dw (d) if `weight_gradient`; with `accumulate` dw is updated instead. The reciprocal root is
// computed again from x.
struct RmsNormGrad {
  float epsilon = 1e-5F;
  bool weight_gradient = false;
  bool addend = false;
  bool accumulate = false;
  float offset = 0.0F;
  bool operator==(const RmsNormGrad&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"epsilon", &RmsNormGrad::epsilon},
      Field{"weight_gradient", &RmsNormGrad::weight_gradient},
      Field{"addend", &RmsNormGrad::addend}, Field{"accumulate", &RmsNormGrad::accumulate},
      Field{"offset", &RmsNormGrad::offset}};
  static constexpr auto kDY = read<RmsNormGrad>(0, "dy");
  static constexpr auto kX = read<RmsNormGrad>(1, "x");
  static constexpr auto kW = read<RmsNormGrad>(2, "w");
  static constexpr auto kAddend = read<RmsNormGrad>(3, kAddendOperand.text, &RmsNormGrad::addend);
  static constexpr auto kDX = write<RmsNormGrad>(4, "dx");
  static constexpr auto kDW = write_or_update<RmsNormGrad>(5, "dw", &RmsNormGrad::accumulate,
                                                           &RmsNormGrad::weight_gradient);
  static constexpr std::array kOperands{kDY, kX, kW, kAddend, kDX, kDW};
  static constexpr std::array kInPlace{InPlaceOperands<RmsNormGrad>{kDX, kAddend}};
};

}  // namespace snug::program
