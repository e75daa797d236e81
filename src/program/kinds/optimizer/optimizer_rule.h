// What the shape rules of all optimizers ask alike. Internal to program/kinds.
#pragma once

#include "program/ir/program.h"
#include "program/kinds/shape_rule.h"

namespace snug::program {

// Gradient, factor and learning rate, which every optimizer reads, and its weight.
template <typename Struct>
void check_step(ShapeRule& rule, const Struct&, const OperationView& view) {
  const Tensor& weight = view[Struct::kWeight];
  rule.measure(Struct::kFactor, Shape{1});
  rule.measure(Struct::kLearningRate, Shape{1});
  rule.mixed_types({Struct::kWeight, Struct::kGradient});
  rule.shape(Struct::kGradient, weight.shape);
}

// The f32 that is stepped: the master, or else the weight itself.
template <typename Struct>
void check_master(ShapeRule& rule, const Struct& attributes, const OperationView& view) {
  rule.measure(attributes.has_master ? Struct::kMaster : Struct::kWeight,
               view[Struct::kWeight].shape);
}

template <typename Struct>
void check_betas(ShapeRule& rule, const Struct& attributes) {
  rule.require(attributes.beta1 >= 0.0F && attributes.beta1 < 1.0F, "has a beta1 outside [0, 1)");
  rule.require(attributes.beta2 >= 0.0F && attributes.beta2 < 1.0F, "has a beta2 outside [0, 1)");
}

}  // namespace snug::program
