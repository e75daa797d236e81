// Rotary position embedding (Su et al. 2021) in Hugging Face's half-split layout: element i of a
// head turns with element i + head_dim / 2.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: positions (tokens) i32, inverse_frequency (head_dim / 2) f32.
// writes: table (tokens, head_dim) f32: cosines of position * frequency, then sines, times
// `factor`.
struct RotaryTable {
  float factor = 1.0F;
  bool operator==(const RotaryTable&) const = default;
  static constexpr auto kFields = std::tuple{Field{"factor", &RotaryTable::factor}};
  static constexpr auto kPositions = read<RotaryTable>(0, "positions");
  static constexpr auto kInverseFrequency = read<RotaryTable>(1, "inverse_frequency");
  static constexpr auto kTable = write<RotaryTable>(2, "table");
  static constexpr std::array kOperands{kPositions, kInverseFrequency, kTable};
};

// reads: x (tokens, heads * head_dim), table (tokens, head_dim). writes: y like x, which may share
// x's bytes. `inverse` turns back: the derivative. Only the first `turned_heads` heads are turned
// and the others passed on, as the values in a row of queries, keys and values; 0: all are turned.
struct Rope {
  int64_t head_dim = 0;
  bool inverse = false;
  int64_t turned_heads = 0;
  bool operator==(const Rope&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"head_dim", &Rope::head_dim}, Field{"inverse", &Rope::inverse},
                 Field{"turned_heads", &Rope::turned_heads}};
  static constexpr auto kX = read<Rope>(0, "x");
  static constexpr auto kTable = read<Rope>(1, "table");
  static constexpr auto kY = write<Rope>(2, "y");
  static constexpr std::array kOperands{kX, kTable, kY};
  static constexpr Traits kTraits{.passes_on = kX.name, .is_joinable = true};
};

}  // namespace snug::program
