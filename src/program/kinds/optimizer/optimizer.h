// The update: global norm, clipping, AdamW in two forms.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: any number of gradients. writes: norm (1) f32, the root of the sum of all squares.
struct GlobalNorm {
  bool operator==(const GlobalNorm&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kGradients = read_all<GlobalNorm>(0, "gradients");
  static constexpr auto kNorm = write<GlobalNorm>(1, "norm");
  static constexpr std::array kOperands{kGradients, kNorm};
  static constexpr Traits kTraits{.reads_in_place = true, .norm_of_parts = kNorm.name};
};

// reads: norm (1). writes: factor (1) f32 = min(1, max_norm / (norm + 1e-6)) as torch clips; 1 when
// max_norm is 0; NaN when the norm is not finite, which makes every optimizer leave its tensors
// alone.
struct ClipFactor {
  float max_norm = 0.0F;
  bool operator==(const ClipFactor&) const = default;
  static constexpr auto kFields = std::tuple{Field{"max_norm", &ClipFactor::max_norm}};
  static constexpr auto kNorm = read<ClipFactor>(0, "norm");
  static constexpr auto kFactor = write<ClipFactor>(1, "factor");
  static constexpr std::array kOperands{kNorm, kFactor};
};

// AdamW (Loshchilov and Hutter 2019) in torch's order: decay, moments, step.
// reads: gradient, factor (1), learning_rate (1) f32, step (1) i32 counting from 1.
// updates: weight, first moment, second moment, then master f32 with `has_master`; without it the
// weight is its own master. Without `stochastic`, moments are f32 and the f32 master (or f32
// weight) is stepped and rounded to the weight. With it, weight and moments are bf16 and all three
// are rounded stochastically, keyed by (seed, step, site, element).
struct AdamW {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  bool stochastic = false;
  bool has_master = false;
  int64_t seed = 0;
  int32_t site = 0;
  bool operator==(const AdamW&) const = default;
  static constexpr auto kFields = std::tuple{Field{"beta1", &AdamW::beta1},
                                             Field{"beta2", &AdamW::beta2},
                                             Field{"epsilon", &AdamW::epsilon},
                                             Field{"weight_decay", &AdamW::weight_decay},
                                             Field{"stochastic", &AdamW::stochastic},
                                             Field{"has_master", &AdamW::has_master},
                                             Field{"seed", &AdamW::seed},
                                             Field{"site", &AdamW::site}};
  static constexpr auto kGradient = read<AdamW>(0, kGradientOperand.text);
  static constexpr auto kFactor = read<AdamW>(1, kFactorOperand.text);
  static constexpr auto kLearningRate = read<AdamW>(2, "learning_rate");
  static constexpr auto kStep = read<AdamW>(3, "step");
  static constexpr auto kWeight = update<AdamW>(4, kWeightOperand.text);
  static constexpr auto kFirstMoment = update<AdamW>(5, "first_moment");
  static constexpr auto kSecondMoment = update<AdamW>(6, "second_moment");
  static constexpr auto kMaster = update<AdamW>(7, "master", &AdamW::has_master);
  static constexpr std::array kOperands{kGradient, kFactor,      kLearningRate, kStep,
                                        kWeight,   kFirstMoment, kSecondMoment, kMaster};
  static constexpr Traits kTraits{.category = Category::optimizer};
};

// AdamW with moments of 8 bits, as bitsandbytes' AdamW8bit steps (Dettmers et al., "8-bit
// optimizers via block-wise quantization", ICLR 2022): each moment is a code of a dynamic map
// (base/ dynamic_map.h; the first signed, the second unsigned) times the largest magnitude of its
// block of kStateBlock consecutive elements. reads: gradient, factor (1), learning_rate (1) f32,
// step (1) i32 counting from 1. updates: weight, first moment u8, second moment u8, both of the
// weight's shape, then their largest magnitudes f32, (state_blocks(elements)) each. Zero bytes
// everywhere are the starting state. With c1 = 1 - beta1^t, c2 = sqrt(1 - beta2^t), rate =
// learning_rate, g = gradient * factor and fma(a, b, c) = a b + c in one rounding:
//   m = fma(g, 1 - beta1, beta1 m);  v = fma((1 - beta2) g, g, beta2 v)
//   weight = fma(-rate c2 / c1, m / (sqrt(v) + c2 epsilon), weight) * (1 - rate weight_decay)
// and both are encoded again, m and v divided by their new largest magnitude; where a code's sign
// differs from m's the code moves one towards m's. The step is made with m and v as they were
// before encoding. A gradient element that is not finite sets its m and v to 0 and keeps its
// weight. A weight of bf16 is rounded stochastically, keyed by (seed, step, site, element).
struct AdamW8bit {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  int64_t seed = 0;
  int32_t site = 0;
  bool operator==(const AdamW8bit&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"beta1", &AdamW8bit::beta1},     Field{"beta2", &AdamW8bit::beta2},
      Field{"epsilon", &AdamW8bit::epsilon}, Field{"weight_decay", &AdamW8bit::weight_decay},
      Field{"seed", &AdamW8bit::seed},       Field{"site", &AdamW8bit::site}};
  static constexpr auto kGradient = read<AdamW8bit>(0, kGradientOperand.text);
  static constexpr auto kFactor = read<AdamW8bit>(1, kFactorOperand.text);
  static constexpr auto kLearningRate = read<AdamW8bit>(2, "learning_rate");
  static constexpr auto kStep = read<AdamW8bit>(3, "step");
  static constexpr auto kWeight = update<AdamW8bit>(4, kWeightOperand.text);
  static constexpr auto kFirstMoment = update<AdamW8bit>(5, "first_moment");
  static constexpr auto kSecondMoment = update<AdamW8bit>(6, "second_moment");
  static constexpr auto kFirstScale = update<AdamW8bit>(7, "first_scale");
  static constexpr auto kSecondScale = update<AdamW8bit>(8, "second_scale");
  static constexpr std::array kOperands{kGradient,     kFactor,     kLearningRate,
                                        kStep,         kWeight,     kFirstMoment,
                                        kSecondMoment, kFirstScale, kSecondScale};
  static constexpr Traits kTraits{.category = Category::optimizer};
};

// Elements that share one scale of an 8-bit moment, and how many scales a moment has.
inline constexpr int64_t kStateBlock = 256;
constexpr int64_t state_blocks(int64_t elements) {
  return (elements + kStateBlock - 1) / kStateBlock;
}

}  // namespace snug::program
