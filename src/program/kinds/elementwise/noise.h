// add_noise: NEFTune's noise on embeddings (Jain et al. 2023).
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"

namespace snug::program {

// reads: x (tokens, n); bounds (segments, 2) i32, [begin, end) of each, in ascending order;
// `random` (2) i32 as dropout has it. writes: y = x + alpha / sqrt(length n) u, where length is the
// number of tokens of the segment that a token lies in, and u is drawn uniformly from [-1, 1) for
// each element; y = x for a token in no segment. u is a function of (seed, step, row in the step,
// site, position in the row, column), rows being `row_length` tokens: neither batch size nor
// recomputation changes it.
struct AddNoise {
  float alpha = 0.0F;
  int64_t row_length = 1;
  int64_t seed = 0;
  int32_t site = 0;
  bool operator==(const AddNoise&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"alpha", &AddNoise::alpha}, Field{"row_length", &AddNoise::row_length},
                 Field{"seed", &AddNoise::seed}, Field{"site", &AddNoise::site}};
  static constexpr auto kX = read<AddNoise>(0, "x");
  static constexpr auto kBounds = read<AddNoise>(1, "bounds");
  static constexpr auto kRandom = read<AddNoise>(2, "random");
  static constexpr auto kY = write<AddNoise>(3, "y");
  static constexpr std::array kOperands{kX, kBounds, kRandom, kY};
  static constexpr std::array kInPlace{InPlaceOperands<AddNoise>{kY, kX}};
};

}  // namespace snug::program
