// What a row of attention ends with.
#pragma once

#include "backends/cuda/kernels/element.cuh"

namespace snug::backends::cuda {

// What a row's sums are multiplied by, and the logarithm of the sum of all exponentials.
struct RowEnd {
  float scale, lse;
};

// The end of a row of this head: `largest` is what its `sum` was taken against, by natural
// logarithms; 0: it has seen nothing. A sink joins here, so that the loops over keys need none.
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
