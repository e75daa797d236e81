// What a row of attention ends with, for kernel files only.
#pragma once

#include "backends/cpu/attention/kernels/attention_blocks.h"
#include "backends/cpu/kernels/exp2.h"

namespace snug::backends::cpu::SNUG_ISA {

// What its sums are multiplied by, and the logarithm of the sum of all exponentials.
struct RowEnd {
  float share, lse;
};

// The end of a row of this head that has seen a key: `largest`, in powers of two, is what its
// `total` was taken against. A sink joins here, so that the loops over keys need none.
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
