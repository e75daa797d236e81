// The update: global norm, clipping, AdamW.
#pragma once

#include <cstdint>

#include "program/kinds/field.h"

namespace snug::program {

// reads: any number of gradients. writes: norm (1) f32, the root of the sum of all squares.
struct GlobalNorm {
  bool operator==(const GlobalNorm&) const = default;
  static constexpr std::tuple<> kFields{};
};

// reads: norm (1). writes: factor (1) f32 = min(1, max_norm / (norm + 1e-6)) as torch clips; 1 when
// max_norm is 0; NaN when the norm is not finite, which makes every optimizer leave its tensors
// alone.
struct ClipFactor {
  float max_norm = 0.0F;
  bool operator==(const ClipFactor&) const = default;
  static constexpr auto kFields = std::tuple{Field{"max_norm", &ClipFactor::max_norm}};
};

// AdamW (Loshchilov and Hutter 2019) in torch's order: decay, moments, step.
// reads: gradient, factor (1), learning_rate (1) f32, step (1) i32 counting from 1.
// updates: weight, first moment, second moment, then master f32 if the weight is not itself the
// master. Without `stochastic`, moments are f32 and the f32 master (or f32 weight) is stepped and
// rounded to the weight. With it, weight and moments are bf16 and all three are rounded
// stochastically, keyed by (seed, step, site, element).
struct AdamW {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  bool stochastic = false;
  int64_t seed = 0;
  int32_t site = 0;
  bool operator==(const AdamW&) const = default;
  static constexpr auto kFields = std::tuple{Field{"beta1", &AdamW::beta1},
                                             Field{"beta2", &AdamW::beta2},
                                             Field{"epsilon", &AdamW::epsilon},
                                             Field{"weight_decay", &AdamW::weight_decay},
                                             Field{"stochastic", &AdamW::stochastic},
                                             Field{"seed", &AdamW::seed},
                                             Field{"site", &AdamW::site}};
};

}  // namespace snug::program
