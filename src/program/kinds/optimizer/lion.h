// Lion: the sign of a mean of gradients.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023), with decoupled weight
// decay. reads: gradient, factor (1), learning_rate (1) f32. updates: weight, momentum f32, then
// master f32 with `has_master`; without it the weight is f32 and its own master. With g = gradient
// * factor, rate = learning_rate, and the momentum m as it was before:
//   weight = weight (1 - rate weight_decay) - rate sign(beta1 m + (1 - beta1) g),   sign(0) = 0
//   m = beta2 m + (1 - beta2) g
struct Lion {
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float weight_decay = 0.0F;
  bool has_master = false;
  bool operator==(const Lion&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"beta1", &Lion::beta1}, Field{"beta2", &Lion::beta2},
      Field{"weight_decay", &Lion::weight_decay}, Field{"has_master", &Lion::has_master}};
  static constexpr auto kGradient = read<Lion>(0, kGradientOperand.text);
  static constexpr auto kFactor = read<Lion>(1, kFactorOperand.text);
  static constexpr auto kLearningRate = read<Lion>(2, "learning_rate");
  static constexpr auto kWeight = update<Lion>(3, kWeightOperand.text);
  static constexpr auto kMomentum = update<Lion>(4, "momentum");
  static constexpr auto kMaster = update<Lion>(5, "master", &Lion::has_master);
  static constexpr std::array kOperands{kGradient, kFactor,   kLearningRate,
                                        kWeight,   kMomentum, kMaster};
  static constexpr Traits kTraits{.category = Category::optimizer};
};

}  // namespace snug::program
