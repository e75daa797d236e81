#include <algorithm>
#include <span>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/expert/expert_bias.h"

namespace snug::backends::reference {
namespace {

using program::AddExpertBias;
using program::ExpertBiasGrad;
using program::ExpertBiasWeightsGrad;

// The expert that has a row: the one whose range contains it.
int64_t expert_with(const Integers& bounds, int64_t row) {
  int64_t expert = 0;
  while (row < bounds[2 * expert] || row >= bounds[2 * expert + 1]) ++expert;
  return expert;
}

// The factor for the bias in each row: 1 where biases are not weighted.
template <typename T, typename Struct>
std::span<T> row_weights(const Struct& attributes, const Invocation& invocation) {
  const std::span<T> by_row = scratch<T>(invocation);
  std::fill(by_row.begin(), by_row.end(), T{1});
  if (!attributes.weighted) return by_row;
  const Floats<T> weights(invocation[Struct::kWeights]);
  const Integers places(invocation[Struct::kPlaces]);
  for (int64_t i = 0; i < places.count(); ++i) by_row[static_cast<size_t>(places[i])] = weights[i];
  return by_row;
}

template <typename T>
void run(const AddExpertBias& add, const Invocation& invocation) {
  const Floats<T> x(invocation[AddExpertBias::kX]);
  const Floats<T> bias(invocation[AddExpertBias::kBias]);
  const Integers bounds(invocation[AddExpertBias::kBounds]);
  const Floats<T> y(invocation[AddExpertBias::kY]);
  const std::span<T> weights = row_weights<T>(add, invocation);
  for (int64_t row = 0; row < x.rows(); ++row) {
    const int64_t expert = expert_with(bounds, row);
    for (int64_t j = 0; j < x.columns(); ++j)
      y.set(row, j, x.at(row, j) + weights[static_cast<size_t>(row)] * bias.at(expert, j));
  }
}

template <typename T>
void run(const ExpertBiasGrad& grad, const Invocation& invocation) {
  const Floats<T> dy(invocation[ExpertBiasGrad::kDY]);
  const Integers bounds(invocation[ExpertBiasGrad::kBounds]);
  const Floats<T> dbias(invocation[ExpertBiasGrad::kDBias]);
  const std::span<T> weights = row_weights<T>(grad, invocation);
  for (int64_t expert = 0; expert < dbias.rows(); ++expert)
    for (int64_t j = 0; j < dbias.columns(); ++j) {
      T sum = 0;
      for (int64_t row = bounds[2 * expert]; row < bounds[2 * expert + 1]; ++row)
        sum += weights[static_cast<size_t>(row)] * dy.at(row, j);
      dbias.set(expert, j, sum);
    }
}

template <typename T>
void run(const ExpertBiasWeightsGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[ExpertBiasWeightsGrad::kDY]);
  const Floats<T> bias(invocation[ExpertBiasWeightsGrad::kBias]);
  const Integers bounds(invocation[ExpertBiasWeightsGrad::kBounds]);
  const Integers places(invocation[ExpertBiasWeightsGrad::kPlaces]);
  const Floats<T> dweights(invocation[ExpertBiasWeightsGrad::kDWeights]);
  for (int64_t i = 0; i < places.count(); ++i) {
    const int64_t expert = expert_with(bounds, places[i]);
    T sum = 0;
    for (int64_t j = 0; j < dy.columns(); ++j) sum += dy.at(places[i], j) * bias.at(expert, j);
    dweights.set(i, sum);
  }
}

int64_t scratch_elements(const AddExpertBias&, const program::OperationView& view) {
  return view[AddExpertBias::kX].shape.rows();
}

int64_t scratch_elements(const ExpertBiasGrad&, const program::OperationView& view) {
  return view[ExpertBiasGrad::kDY].shape.rows();
}

}  // namespace

SNUG_REFERENCE_KIND(AddExpertBias, .scratch_elements = scratch_elements);
SNUG_REFERENCE_KIND(ExpertBiasGrad, .scratch_elements = scratch_elements);
SNUG_REFERENCE_KIND(ExpertBiasWeightsGrad);

}  // namespace snug::backends::reference
