// Dynamic loss scaling, for gradients in fp16: scale_by, scaled_clip_factor. The loss's gradient
// begins with a scale, so that small gradients of activations stay above fp16's smallest numbers;
// the update divides by it again, and changes it by whether gradients were finite.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/loss/loss_scale_counts.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (n), scale (1). writes: y (n) = scale x, or x / scale with `divides`.
struct ScaleBy {
  bool divides = false;
  bool operator==(const ScaleBy&) const = default;
  static constexpr auto kFields = std::tuple{Field{"divides", &ScaleBy::divides}};
  static constexpr auto kX = read<ScaleBy>(0, "x");
  static constexpr auto kScale = read<ScaleBy>(1, "scale");
  static constexpr auto kY = write<ScaleBy>(2, "y");
  static constexpr std::array kOperands{kX, kScale, kY};
};

// The clip factor of gradients that are `scale` times too large, and the scale of the next step.
// reads: scaled_norm (1), of those gradients. writes: norm (1) f32 = scaled_norm / scale; factor
// (1) f32 = the factor of clip_factor for that norm, divided by the scale; NaN when scaled_norm is
// not finite, which makes every optimizer leave its tensors alone. updates: scale (1) f32, counts
// (kLossScaleCounts) f32, whole numbers.
//
// As torch.amp.GradScaler and DeepSpeed change it: after a step that is not finite the scale is
// divided by 2, down to `least`, but only once `hysteresis` - 1 such steps were tolerated without
// that; after `window` finite steps in a row it is doubled, as long as that is finite, and
// tolerates as many again. With window 0 it stays as it is.
struct ScaledClipFactor {
  float max_norm = 0.0F;
  int64_t window = 0;
  int32_t hysteresis = 1;
  float least = 0.0F;
  bool operator==(const ScaledClipFactor&) const = default;
  static constexpr auto kFields = std::tuple{
      Field{"max_norm", &ScaledClipFactor::max_norm}, Field{"window", &ScaledClipFactor::window},
      Field{"hysteresis", &ScaledClipFactor::hysteresis}, Field{"least", &ScaledClipFactor::least}};
  static constexpr auto kScaledNorm = read<ScaledClipFactor>(0, "scaled_norm");
  static constexpr auto kNorm = write<ScaledClipFactor>(1, "norm");
  static constexpr auto kFactor = write<ScaledClipFactor>(2, "factor");
  static constexpr auto kScale = update<ScaledClipFactor>(3, "scale");
  static constexpr auto kCounts = update<ScaledClipFactor>(4, "counts");
  static constexpr std::array kOperands{kScaledNorm, kNorm, kFactor, kScale, kCounts};
};

}  // namespace snug::program
