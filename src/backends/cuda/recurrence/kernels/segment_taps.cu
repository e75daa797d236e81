#include "backends/cuda/recurrence/kernels/segment_taps.h"

#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

struct CountTaps {
  SegmentTapsRun run;
  __device__ void operator()(int64_t, int64_t token) const {
    int64_t taps = 0;
    for (int64_t i = 0; i < run.segments; ++i)
      if (run.bounds[2 * i] <= token && token < run.bounds[2 * i + 1])
        taps = token - run.bounds[2 * i] + 1;
    run.taps[token] = static_cast<int32_t>(taps < run.width ? taps : run.width);
  }
};

}  // namespace

void count_segment_taps(const SegmentTapsRun& run, cudaStream_t stream) {
  over_items(CountTaps{run}, 1, run.tokens, stream);
}

}  // namespace snug::backends::cuda
