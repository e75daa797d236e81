#include "program/kinds/loss/segment_sums.h"
#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"

namespace snug::backends::reference {
namespace {

using program::SpreadSegments;
using program::SumSegments;
using program::WeighRows;

template <typename T>
void run(const SumSegments& sum, const Invocation& invocation) {
  const Floats<T> values(invocation[SumSegments::kValues]);
  const Integers bounds(invocation[SumSegments::kBounds]);
  const Floats<T> sums(invocation[SumSegments::kSums]);
  for (int64_t s = 0; s < sums.count(); ++s) {
    T total = 0;
    for (int64_t t = bounds[2 * s]; t < bounds[2 * s + 1]; ++t) total += values[t];
    sums.set(s, static_cast<T>(sum.scale) * total);
  }
}

template <typename T>
void run(const SpreadSegments& spread, const Invocation& invocation) {
  const Floats<T> sums(invocation[SpreadSegments::kSums]);
  const Integers bounds(invocation[SpreadSegments::kBounds]);
  const Floats<T> values(invocation[SpreadSegments::kValues]);
  for (int64_t t = 0; t < values.count(); ++t) values.set(t, T{0});
  for (int64_t s = 0; s < sums.count(); ++s)
    for (int64_t t = bounds[2 * s]; t < bounds[2 * s + 1]; ++t)
      values.set(t, static_cast<T>(spread.scale) * sums[s]);
}

template <typename T>
void run(const WeighRows&, const Invocation& invocation) {
  const Floats<T> x(invocation[WeighRows::kX]);
  const Floats<T> weights(invocation[WeighRows::kWeights]);
  const Floats<T> y(invocation[WeighRows::kY]);
  for (int64_t t = 0; t < x.rows(); ++t)
    for (int64_t j = 0; j < x.columns(); ++j) y.set(t, j, weights[t] * x.at(t, j));
}

}  // namespace

SNUG_REFERENCE_KIND(SumSegments);
SNUG_REFERENCE_KIND(SpreadSegments);
SNUG_REFERENCE_KIND(WeighRows);

}  // namespace snug::backends::reference
