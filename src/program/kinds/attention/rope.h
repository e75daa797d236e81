// Rotary position embedding (Su et al. 2021) of the first `rotary_dim` elements of a head. In
// Hugging Face's half-split layout element i is rotated with element i + rotary_dim / 2;
// `interleaved`, as in GPT-J, element 2i is rotated with element 2i + 1.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: positions (tokens) i32, inverse_frequency (rotary_dim / 2) f32.
// writes: table (tokens, rotary_dim) f32: cosines of position * frequency, then sines, times
// `factor`. With `growth` a row is also multiplied by 1 + growth ln(1 + floor(position / period)),
// as the queries of Llama 4 and Ministral 3 are.
struct RotaryTable {
  float factor = 1.0F;
  float growth = 0.0F;
  int64_t period = 1;
  bool operator==(const RotaryTable&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"factor", &RotaryTable::factor}, Field{"growth", &RotaryTable::growth},
                 Field{"period", &RotaryTable::period}};
  static constexpr auto kPositions = read<RotaryTable>(0, "positions");
  static constexpr auto kInverseFrequency = read<RotaryTable>(1, "inverse_frequency");
  static constexpr auto kTable = write<RotaryTable>(2, "table");
  static constexpr std::array kOperands{kPositions, kInverseFrequency, kTable};
};

// reads: x (tokens, heads * head_dim), table (tokens, rotary_dim). writes: y like x, which may
// share x's bytes. `inverse` rotates back: the derivative. Only the first `rotated_heads` heads are
// rotated and the others passed on, as the values in a row of queries, keys and values; 0: all are
// rotated. What lies beyond rotary_dim in a head is passed on too; 0: the whole head is rotated.
struct Rope {
  int64_t head_dim = 0;
  bool inverse = false;
  int64_t rotated_heads = 0;
  int64_t rotary_dim = 0;
  bool interleaved = false;
  bool operator==(const Rope&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"head_dim", &Rope::head_dim}, Field{"inverse", &Rope::inverse},
                 Field{"rotated_heads", &Rope::rotated_heads},
                 Field{"rotary_dim", &Rope::rotary_dim}, Field{"interleaved", &Rope::interleaved}};
  static constexpr auto kX = read<Rope>(0, "x");
  static constexpr auto kTable = read<Rope>(1, "table");
  static constexpr auto kY = write<Rope>(2, "y");
  static constexpr std::array kOperands{kX, kTable, kY};
  static constexpr std::array kInPlace{InPlaceOperands<Rope>{kY, kX}};
  static constexpr Traits kTraits{.is_joinable = true, .passes_on = kX.name};
};

// The factor of a table's row at this position.
inline double row_factor(const RotaryTable& rotary, int64_t position) {
  const int64_t periods = position / rotary.period;  // whole ones
  return rotary.factor * (1.0 + rotary.growth * std::log1p(static_cast<double>(periods)));
}

// Elements of each head that are rotated.
constexpr int64_t rotated_width(const Rope& rope) {
  return rope.rotary_dim > 0 ? rope.rotary_dim : rope.head_dim;
}

}  // namespace snug::program
