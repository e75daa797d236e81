// sum_segments, spread_segments, weigh_rows: from a number for each token to one for each segment,
// and back to the rows of the tokens. With them a loss of whole sequences gives each row of the
// head's gradient its weight.
#pragma once

#include <array>

#include "program/ir/tensor.h"
#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

class Tape;

// reads: values (tokens), bounds (segments, 2) i32, [begin, end) of each. writes: sums (segments):
// `scale` times the sum of a segment's values; 0 for an empty one.
struct SumSegments {
  float scale = 1.0F;
  bool operator==(const SumSegments&) const = default;
  static constexpr auto kFields = std::tuple{Field{"scale", &SumSegments::scale}};
  static constexpr auto kValues = read<SumSegments>(0, "values");
  static constexpr auto kBounds = read<SumSegments>(1, "bounds");
  static constexpr auto kSums = write<SumSegments>(2, "sums");
  static constexpr std::array kOperands{kValues, kBounds, kSums};
};

// reads: sums (segments), bounds (segments, 2) i32, of segments that do not overlap; tokens only as
// the shape of what is written. writes: values (tokens): `scale` times the number of the segment
// that a token lies in, 0 outside of all. The derivative of sum_segments.
struct SpreadSegments {
  float scale = 1.0F;
  bool operator==(const SpreadSegments&) const = default;
  static constexpr auto kFields = std::tuple{Field{"scale", &SpreadSegments::scale}};
  static constexpr auto kSums = read<SpreadSegments>(0, "sums");
  static constexpr auto kBounds = read<SpreadSegments>(1, "bounds");
  static constexpr auto kValues = write<SpreadSegments>(2, "values");
  static constexpr std::array kOperands{kSums, kBounds, kValues};
};

// reads: x (rows, d), weights (rows). writes: y, as x: y[t] = weights[t] * x[t]. y may share the
// bytes of x.
struct WeighRows {
  bool operator==(const WeighRows&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kX = read<WeighRows>(0, "x");
  static constexpr auto kWeights = read<WeighRows>(1, "weights");
  static constexpr auto kY = write<WeighRows>(2, "y");
  static constexpr std::array kOperands{kX, kWeights, kY};
  static constexpr std::array kInPlace{InPlaceOperands<WeighRows>{kY, kX}};
  static constexpr Traits kTraits{.recomputing = Recomputing::cheap};
};

// For a derivative that makes the gradient of `x` (rows, d) before it is known what each row's own
// loss counts. Returns the tensor to write it to, as if each counted once. When the backward pass
// has the gradient of `losses` (rows), it weighs the rows by that: both are numbers of a row, so
// that nothing is made again.
TensorId weigh_rows_later(TensorId x, TensorId losses, Tape& tape);

}  // namespace snug::program
