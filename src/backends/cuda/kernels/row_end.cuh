// The end of a row of attention.
#pragma once

#include "backends/cuda/kernels/element.cuh"

namespace snug::backends::cuda {

// The factor for a row's sums, and the logarithm of the sum of all exponentials.
struct RowEnd {
  float scale, lse;
};

// Finishes a row of this head: `sum` is relative to `largest`, in natural logarithms; a sum of 0
// means that it has seen no key. A sink is included here, so that the loops over keys need not
// handle it.
__device__ inline RowEnd end_of_row(const DeviceRows& sinks, int64_t head, float largest,
                                    float sum) {
  if (!(sum > 0.0F)) return {0.0F, 0.0F};
  if (sinks.data == nullptr) return {1.0F / sum, largest + logf(sum)};
  const float sink = load_one(sinks, head);
  const float peak = fmaxf(largest, sink);
  const float correction = expf(largest - peak);
  const float all = sum * correction + expf(sink - peak);
  return {correction / all, peak + logf(all)};
}

}  // namespace snug::backends::cuda
