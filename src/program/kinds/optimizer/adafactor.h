// Adafactor: second moments of a matrix as the product of their means over rows and over columns.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// Adafactor (Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost",
// 2018), as transformers steps it without a first moment and with a learning rate that is given.
// reads: gradient, factor (1), learning_rate (1) f32, step (1) i32 counting from 1. updates:
// weight, row moments f32, with `factored` column moments f32, then master f32 with `has_master`;
// without it the weight is f32 and its own master. Without `factored`, row moments are of the
// weight's shape. With it, the weight is a matrix (r, c), row moments are (r) and column moments
// (c). With g = gradient * factor, rate = learning_rate and t = step:
//   beta = 1 - t^decay_rate;  s = g^2 + epsilon
//   factored: row_i = beta row_i + (1 - beta) mean over j of s_ij;  columns likewise over i
//             u_ij = g_ij / sqrt(row_i column_j / mean of row)
//   else:     row = beta row + (1 - beta) s;  u = g / sqrt(row)
//   u = u / max(1, root mean square of u / clip_threshold)
//   weight = weight (1 - rate weight_decay) - rate u
struct Adafactor {
  float decay_rate = -0.8F;
  float epsilon = 1e-30F;
  float clip_threshold = 1.0F;
  float weight_decay = 0.0F;
  bool factored = false;
  bool has_master = false;
  bool operator==(const Adafactor&) const = default;
  static constexpr auto kFields = std::tuple{Field{"decay_rate", &Adafactor::decay_rate},
                                             Field{"epsilon", &Adafactor::epsilon},
                                             Field{"clip_threshold", &Adafactor::clip_threshold},
                                             Field{"weight_decay", &Adafactor::weight_decay},
                                             Field{"factored", &Adafactor::factored},
                                             Field{"has_master", &Adafactor::has_master}};
  static constexpr auto kGradient = read<Adafactor>(0, kGradientOperand.text);
  static constexpr auto kFactor = read<Adafactor>(1, kFactorOperand.text);
  static constexpr auto kLearningRate = read<Adafactor>(2, "learning_rate");
  static constexpr auto kStep = read<Adafactor>(3, "step");
  static constexpr auto kWeight = update<Adafactor>(4, kWeightOperand.text);
  static constexpr auto kRows = update<Adafactor>(5, "row_moment");
  static constexpr auto kColumns = update<Adafactor>(6, "column_moment", &Adafactor::factored);
  static constexpr auto kMaster = update<Adafactor>(7, "master", &Adafactor::has_master);
  static constexpr std::array kOperands{kGradient, kFactor, kLearningRate, kStep,
                                        kWeight,   kRows,   kColumns,      kMaster};
  static constexpr Traits kTraits{.category = Category::optimizer};
};

}  // namespace snug::program
