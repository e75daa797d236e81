// The end of a row of attention, for kernel files only.
#pragma once

#include "backends/cpu/attention/kernels/attention_blocks.h"
#include "backends/cpu/kernels/exp2.h"

namespace snug::backends::cpu::SNUG_ISA {

// The factor for the row's sums, and the logarithm of the sum of all exponentials.
struct RowEnd {
  float share, lse;
};

// Finishes a row of this head that has seen at least one key: `total` is relative to `largest`, an
// exponent of two. A sink is included here, so that the loops over keys need not handle it.
template <typename Stored>
SNUG_INLINE RowEnd end_of_row(const AttentionTile& tile, int64_t head, float largest, float total) {
  if (tile.sinks == nullptr) return {1.0F / total, largest * kLogOf2 + __builtin_logf(total)};
  const Float16Lanes given = load_partial(static_cast<const Stored*>(tile.sinks) + head, 1, 0.0F);
  const float sink = given[0] * kLog2OfE;
  const float peak = largest >= sink ? largest : sink;
  const float correction = exp2(splat(largest - peak))[0];
  const float all = total * correction + exp2(splat(sink - peak))[0];
  return {correction / all, peak * kLogOf2 + __builtin_logf(all)};
}

}  // namespace snug::backends::cpu::SNUG_ISA
