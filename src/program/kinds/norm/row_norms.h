// row_norms: the Euclidean norms of a weight's rows, or of those of the weight with an adapter's
// product added, which is made a block of rows at a time and never whole (DoRA, Liu et al. 2024).
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: w (out, in), or (in, out) with `transposed`; with `low_rank` a (r, in) and b (out, r).
// writes: norms (out) f32: of the rows of w, or of w + alpha b a. It has no derivative: the norms
// are constants to what reads them.
struct RowNorms {
  bool transposed = false;
  bool low_rank = false;
  float alpha = 1.0F;
  bool operator==(const RowNorms&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"transposed", &RowNorms::transposed}, Field{"low_rank", &RowNorms::low_rank},
                 Field{"alpha", &RowNorms::alpha}};
  static constexpr auto kW = read<RowNorms>(0, "w");
  static constexpr auto kA = read<RowNorms>(1, "a", &RowNorms::low_rank);
  static constexpr auto kB = read<RowNorms>(2, "b", &RowNorms::low_rank);
  static constexpr auto kNorms = write<RowNorms>(3, "norms");
  static constexpr std::array kOperands{kW, kA, kB, kNorms};
  static constexpr Traits kTraits{.recomputing = Recomputing::kept};
};

}  // namespace snug::program
