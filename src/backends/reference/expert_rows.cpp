#include "program/kinds/expert/expert_rows.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

using program::Combine;
using program::Permute;
using program::ScaleRows;
using program::ScaleRowsGrad;

template <typename T>
void run(const Permute&, const Invocation& invocation) {
  const Floats<T> x(invocation[Permute::kX]);
  const Integers places(invocation[Permute::kPlaces]);
  const Floats<T> y(invocation[Permute::kY]);
  const int64_t k = invocation[Permute::kPlaces].shape.columns();
  for (int64_t i = 0; i < places.count(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) y.set(places[i], j, x.at(i / k, j));
}

template <typename T>
void run(const Combine&, const Invocation& invocation) {
  const Floats<T> x(invocation[Combine::kX]);
  const Integers places(invocation[Combine::kPlaces]);
  const Floats<T> y(invocation[Combine::kY]);
  const int64_t k = invocation[Combine::kPlaces].shape.columns();
  for (int64_t t = 0; t < y.rows(); ++t)
    for (int64_t j = 0; j < y.columns(); ++j) {
      T sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += x.at(places[t * k + i], j);
      y.set(t, j, sum);
    }
}

template <typename T>
void run(const ScaleRows&, const Invocation& invocation) {
  const Floats<T> x(invocation[ScaleRows::kX]);
  const Floats<T> weights(invocation[ScaleRows::kWeights]);
  const Integers places(invocation[ScaleRows::kPlaces]);
  const Floats<T> y(invocation[ScaleRows::kY]);
  for (int64_t i = 0; i < places.count(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) y.set(places[i], j, weights[i] * x.at(places[i], j));
}

template <typename T>
void run(const ScaleRowsGrad&, const Invocation& invocation) {
  const Floats<T> dy(invocation[ScaleRowsGrad::kDY]);
  const Floats<T> x(invocation[ScaleRowsGrad::kX]);
  const Floats<T> weights(invocation[ScaleRowsGrad::kWeights]);
  const Integers places(invocation[ScaleRowsGrad::kPlaces]);
  const Floats<T> dx(invocation[ScaleRowsGrad::kDX]);
  const Floats<T> dweights(invocation[ScaleRowsGrad::kDWeights]);
  for (int64_t i = 0; i < places.count(); ++i) {
    const int64_t row = places[i];
    T sum = 0;
    for (int64_t j = 0; j < x.columns(); ++j) {
      sum += dy.at(row, j) * x.at(row, j);
      dx.set(row, j, weights[i] * dy.at(row, j));
    }
    dweights.set(i, sum);
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Permute);
SNUG_REFERENCE_KIND(Combine);
SNUG_REFERENCE_KIND(ScaleRows);
SNUG_REFERENCE_KIND(ScaleRowsGrad);

}  // namespace snug::backends::reference
