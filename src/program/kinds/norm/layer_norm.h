// layer_norm: y = (x - mean(x)) / sqrt(variance(x) + epsilon) * w [+ bias], statistics in fp32 (Ba
// et al. 2016).
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (tokens, d), w (d), then bias (d) if `bias`. writes: y (tokens, d). The variance is the
// mean of the squared differences from the mean.
struct LayerNorm {
  float epsilon = 1e-5F;
  bool bias = false;
  bool operator==(const LayerNorm&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"epsilon", &LayerNorm::epsilon}, Field{"bias", &LayerNorm::bias}};
  static constexpr auto kX = read<LayerNorm>(0, "x");
  static constexpr auto kW = read<LayerNorm>(1, "w");
  static constexpr auto kBias = read<LayerNorm>(2, "bias", &LayerNorm::bias);
  static constexpr auto kY = write<LayerNorm>(3, "y");
  static constexpr std::array kOperands{kX, kW, kBias, kY};
  static constexpr std::array kInPlace{InPlaceOperands<LayerNorm>{kY, kX}};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap, .passes_on = kX.name};
};

// reads: dy, x (tokens, d), w (d), then an addend (tokens, d) if `addend`. writes: dx (+ addend),
// and dw (d) if `weight_gradient`; with `accumulate` dw is updated instead. Mean and reciprocal
// root are computed again from x. The gradient of a bias is sum_rows of dy.
struct LayerNormGrad {
  float epsilon = 1e-5F;
  bool weight_gradient = false;
  bool addend = false;
  bool accumulate = false;
  bool operator==(const LayerNormGrad&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"epsilon", &LayerNormGrad::epsilon},
      Field{"weight_gradient", &LayerNormGrad::weight_gradient},
      Field{"addend", &LayerNormGrad::addend}, Field{"accumulate", &LayerNormGrad::accumulate}};
  static constexpr auto kDY = read<LayerNormGrad>(0, "dy");
  static constexpr auto kX = read<LayerNormGrad>(1, "x");
  static constexpr auto kW = read<LayerNormGrad>(2, "w");
  static constexpr auto kAddend =
      read<LayerNormGrad>(3, kAddendOperand.text, &LayerNormGrad::addend);
  static constexpr auto kDX = write<LayerNormGrad>(4, "dx");
  static constexpr auto kDW = write_or_update<LayerNormGrad>(5, "dw", &LayerNormGrad::accumulate,
                                                             &LayerNormGrad::weight_gradient);
  static constexpr std::array kOperands{kDY, kX, kW, kAddend, kDX, kDW};
  static constexpr std::array kInPlace{InPlaceOperands<LayerNormGrad>{kDX, kAddend}};
};

}  // namespace snug::program
