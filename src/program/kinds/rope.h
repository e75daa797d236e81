// Rotary position embedding (Su et al. 2021) in Hugging Face's half-split layout: element i of a
// head turns with element i + head_dim / 2.
#pragma once

#include <cstdint>

#include "program/kinds/field.h"

namespace snug::program {

// reads: positions (tokens) i32, inverse_frequency (head_dim / 2) f32.
// writes: table (tokens, head_dim) f32: cosines of position * frequency, then sines, times
// `factor`.
struct RotaryTable {
  float factor = 1.0F;
  bool operator==(const RotaryTable&) const = default;
  static constexpr auto kFields = std::tuple{Field{"factor", &RotaryTable::factor}};
};

// reads: x (tokens, heads * head_dim), table (tokens, head_dim). writes: y like x, which may share
// x's bytes. `inverse` turns back: the derivative.
struct Rope {
  int64_t head_dim = 0;
  bool inverse = false;
  bool operator==(const Rope&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"head_dim", &Rope::head_dim}, Field{"inverse", &Rope::inverse}};
};

}  // namespace snug::program
