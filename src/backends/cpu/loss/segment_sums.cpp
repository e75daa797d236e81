#include <array>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "program/kinds/loss/segment_sums.h"

namespace snug::backends::cpu {
namespace {

using program::SpreadSegments;
using program::SumSegments;
using program::WeighRows;

// Sums are made in fp64 and in token order, so that a segment's sum does not depend on the other
// segments in its row.
void run(const SumSegments& sum, const Invocation& invocation, CpuContext&) {
  const auto* values = invocation[SumSegments::kValues].as<const float>();
  const int32_t* bounds = integers_of(invocation[SumSegments::kBounds]);
  auto* sums = invocation[SumSegments::kSums].as<float>();
  parallel_ranges(invocation[SumSegments::kSums].elements(), 16, [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      double total = 0;
      for (int64_t t = bounds[2 * s]; t < bounds[2 * s + 1]; ++t)
        total += static_cast<double>(values[t]);
      sums[s] = static_cast<float>(static_cast<double>(sum.scale) * total);
    }
  });
}

void run(const SpreadSegments& spread, const Invocation& invocation, CpuContext&) {
  const auto* sums = invocation[SpreadSegments::kSums].as<const float>();
  const int32_t* bounds = integers_of(invocation[SpreadSegments::kBounds]);
  const Buffer& written = invocation[SpreadSegments::kValues];
  auto* values = written.as<float>();
  std::fill_n(values, written.elements(), 0.0F);
  for (int64_t s = 0; s < invocation[SpreadSegments::kSums].elements(); ++s)
    for (int64_t t = bounds[2 * s]; t < bounds[2 * s + 1]; ++t) values[t] = spread.scale * sums[s];
}

void run(const WeighRows&, const Invocation& invocation, CpuContext& context) {
  const Rows x = rows_of(invocation[WeighRows::kX]);
  const Rows y = rows_of(invocation[WeighRows::kY]);
  const auto* weights = invocation[WeighRows::kWeights].as<const float>();
  const auto scale = context.kernels.elementwise->scale[x.element][y.element];
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / x.columns);
  parallel_ranges(x.rows, rows_per_task, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) scale(x.at(t), y.at(t), x.columns, weights[t]);
  });
}

}  // namespace

SNUG_CPU_KIND(SumSegments);
SNUG_CPU_KIND(SpreadSegments);
SNUG_CPU_KIND(WeighRows);

}  // namespace snug::backends::cpu
