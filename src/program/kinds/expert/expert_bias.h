// add_expert_bias: a bias for each expert, added to the rows that it has. Bounds are those of
// grouped_matmul.h, places those of route.h.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: x (rows, n), bias (experts, n), bounds (experts, 2) i32; with `weighted` weights (tokens,
// k) and places (tokens, k) i32. writes: y, as x, whose bytes it may share: y = x + the bias of the
// expert that has the row. With `weighted` the bias of row places[t, i] is multiplied by weights[t,
// i]: what a product of rows that were scaled before it lacks.
struct AddExpertBias {
  bool weighted = false;
  bool operator==(const AddExpertBias&) const = default;
  static constexpr auto kFields = std::tuple{Field{"weighted", &AddExpertBias::weighted}};
  static constexpr auto kX = read<AddExpertBias>(0, "x");
  static constexpr auto kBias = read<AddExpertBias>(1, "bias");
  static constexpr auto kBounds = read<AddExpertBias>(2, "bounds");
  static constexpr auto kWeights = read<AddExpertBias>(3, "weights", &AddExpertBias::weighted);
  static constexpr auto kPlaces = read<AddExpertBias>(4, "places", &AddExpertBias::weighted);
  static constexpr auto kY = write<AddExpertBias>(5, "y");
  static constexpr std::array kOperands{kX, kBias, kBounds, kWeights, kPlaces, kY};
  static constexpr std::array kInPlace{InPlaceOperands<AddExpertBias>{kY, kX}};
};

// reads: dy (rows, n), bounds; with `weighted` weights and places. writes: dbias (experts, n), the
// sum of each expert's rows, of those times their weights with `weighted`; zeros where it has none.
struct ExpertBiasGrad {
  bool weighted = false;
  bool operator==(const ExpertBiasGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"weighted", &ExpertBiasGrad::weighted}};
  static constexpr auto kDY = read<ExpertBiasGrad>(0, "dy");
  static constexpr auto kBounds = read<ExpertBiasGrad>(1, "bounds");
  static constexpr auto kWeights = read<ExpertBiasGrad>(2, "weights", &ExpertBiasGrad::weighted);
  static constexpr auto kPlaces = read<ExpertBiasGrad>(3, "places", &ExpertBiasGrad::weighted);
  static constexpr auto kDBias = write<ExpertBiasGrad>(4, "dbias");
  static constexpr std::array kOperands{kDY, kBounds, kWeights, kPlaces, kDBias};
};

// reads: dy (rows, n), bias, bounds, places. writes: dweights (tokens, k): the dot products of row
// places[t, i] of dy and the bias of the expert that has it.
struct ExpertBiasWeightsGrad {
  bool operator==(const ExpertBiasWeightsGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDY = read<ExpertBiasWeightsGrad>(0, "dy");
  static constexpr auto kBias = read<ExpertBiasWeightsGrad>(1, "bias");
  static constexpr auto kBounds = read<ExpertBiasWeightsGrad>(2, "bounds");
  static constexpr auto kPlaces = read<ExpertBiasWeightsGrad>(3, "places");
  static constexpr auto kDWeights = write<ExpertBiasWeightsGrad>(4, "dweights");
  static constexpr std::array kOperands{kDY, kBias, kBounds, kPlaces, kDWeights};
};

// The expert that has a row, by bounds whose ends never fall.
constexpr int64_t expert_of_row(const int32_t* bounds, int64_t experts, int64_t row) {
  int64_t first = 0;
  int64_t count = experts - 1;
  while (count > 0) {
    const int64_t half = count / 2;
    if (bounds[2 * (first + half) + 1] <= row) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

}  // namespace snug::program
