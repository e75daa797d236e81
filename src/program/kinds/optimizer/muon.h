// Muon: the momentum of a matrix, made orthogonal; and the kinds that it is lowered to, of which
// the products are matmuls.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// Muon (Jordan and others, "Muon: An optimizer for hidden layers in neural networks", 2024), as
// torch.optim.Muon steps it, with decoupled weight decay. reads: gradient, factor (1),
// learning_rate (1) f32. updates: weight (m, n), or (matrices, m, n) of which each matrix is
// stepped on its own; momentum f32; then master f32 with `has_master`; without it the weight is f32
// and its own master. With g = gradient * factor, rate = learning_rate, b = momentum and (c0, c1,
// c2) the coefficients:
//   momentum += (1 - b) (g - momentum)
//   d = nesterov ? g + b (momentum - g) : momentum
//   x = d / max(norm of d, epsilon), then `steps` times, for a matrix that is not taller than wide:
//     p = x x^T;  x = c0 x + (c1 p + c2 p p) x       else p = x^T x;  x = c0 x + x (c1 p + c2 p
//     p)^T
//   weight = weight (1 - rate weight_decay) - rate rate_scale x
// d, x and p are bf16 with `bf16`, as torch has them, else f32.
//
// Each target has it lowered to muon_momentum, and for each matrix to normalize and matmuls, and to
// muon_step. A product can scale, and add what it has as it is: so what it makes of x is x / c0^k
// after step k, and what it makes of p is c1 p.
struct Muon {
  float momentum = 0.95F;
  bool nesterov = true;
  float c0 = 3.4445F;
  float c1 = -4.775F;
  float c2 = 2.0315F;
  int32_t steps = 5;
  float epsilon = 1e-7F;
  float weight_decay = 0.0F;
  float rate_scale = 1.0F;
  bool bf16 = true;
  bool has_master = false;
  bool operator==(const Muon&) const = default;
  static constexpr auto kFields = std::tuple{Field{"momentum", &Muon::momentum},
                                             Field{"nesterov", &Muon::nesterov},
                                             Field{"c0", &Muon::c0},
                                             Field{"c1", &Muon::c1},
                                             Field{"c2", &Muon::c2},
                                             Field{"steps", &Muon::steps},
                                             Field{"epsilon", &Muon::epsilon},
                                             Field{"weight_decay", &Muon::weight_decay},
                                             Field{"rate_scale", &Muon::rate_scale},
                                             Field{"bf16", &Muon::bf16},
                                             Field{"has_master", &Muon::has_master}};
  static constexpr auto kGradient = read<Muon>(0, kGradientOperand.text);
  static constexpr auto kFactor = read<Muon>(1, kFactorOperand.text);
  static constexpr auto kLearningRate = read<Muon>(2, "learning_rate");
  static constexpr auto kWeight = update<Muon>(3, kWeightOperand.text);
  static constexpr auto kMomentum = update<Muon>(4, "momentum");
  static constexpr auto kMaster = update<Muon>(5, "master", &Muon::has_master);
  static constexpr std::array kOperands{kGradient, kFactor,   kLearningRate,
                                        kWeight,   kMomentum, kMaster};
  static constexpr Traits kTraits{.category = Category::optimizer,
                                  .performer = Performer::expansion};
};

// reads: gradient, factor (1) f32. updates: momentum f32. writes: direction, the d of Muon, 0 where
// the factor is NaN, which leaves the momentum as it is.
struct MuonMomentum {
  float momentum = 0.95F;
  bool nesterov = true;
  bool operator==(const MuonMomentum&) const = default;
  static constexpr auto kFields = std::tuple{Field{"momentum", &MuonMomentum::momentum},
                                             Field{"nesterov", &MuonMomentum::nesterov}};
  static constexpr auto kGradient = read<MuonMomentum>(0, "gradient");
  static constexpr auto kFactor = read<MuonMomentum>(1, "factor");
  static constexpr auto kDirection = write<MuonMomentum>(2, "direction");
  static constexpr auto kMomentum = update<MuonMomentum>(3, "momentum");
  static constexpr std::array kOperands{kGradient, kFactor, kDirection, kMomentum};
  static constexpr Traits kTraits{.category = Category::optimizer_part};
};

// reads: x. writes: y = x / max(norm, epsilon), of its shape and type, where the norm is the root
// of the sum of the squares of all of x, rounded to that type.
struct Normalize {
  float epsilon = 1e-7F;
  bool operator==(const Normalize&) const = default;
  static constexpr auto kFields = std::tuple{Field{"epsilon", &Normalize::epsilon}};
  static constexpr auto kX = read<Normalize>(0, "x");
  static constexpr auto kY = write<Normalize>(1, "y");
  static constexpr std::array kOperands{kX, kY};
};

// reads: direction, factor (1), learning_rate (1) f32. updates: weight, then master f32 with
// `has_master`; without it the weight is f32 and its own master. With rate = learning_rate:
//   weight = weight (1 - rate weight_decay) - rate rate_scale direction
// Nothing is changed where the factor is NaN, nor beyond the first `elements` of the whole weight,
// of which a rank may hold a part with padding.
struct MuonStep {
  float weight_decay = 0.0F;
  float rate_scale = 1.0F;
  int64_t elements = 0;
  bool has_master = false;
  bool operator==(const MuonStep&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"weight_decay", &MuonStep::weight_decay}, Field{"rate_scale", &MuonStep::rate_scale},
      Field{"elements", &MuonStep::elements}, Field{"has_master", &MuonStep::has_master}};
  static constexpr auto kDirection = read<MuonStep>(0, "direction");
  static constexpr auto kFactor = read<MuonStep>(1, "factor");
  static constexpr auto kLearningRate = read<MuonStep>(2, "learning_rate");
  static constexpr auto kWeight = update<MuonStep>(3, "weight");
  static constexpr auto kMaster = update<MuonStep>(4, "master", &MuonStep::has_master);
  static constexpr std::array kOperands{kDirection, kFactor, kLearningRate, kWeight, kMaster};
  static constexpr Traits kTraits{.category = Category::optimizer_part};
};

}  // namespace snug::program
