#include "backends/cuda/loss/kernels/segment_sums.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kSumThreads = 256;

// One block per segment.
__global__ void sum_segments_kernel(SegmentSumsRun run) {
  const int64_t s = blockIdx.x;
  const int32_t end = run.bounds[2 * s + 1];
  float sum = 0.0F;
  for (int32_t t = run.bounds[2 * s] + static_cast<int32_t>(threadIdx.x); t < end;
       t += static_cast<int32_t>(blockDim.x))
    sum += run.values[t];
  sum = block_sum(sum);
  if (threadIdx.x == 0) run.sums[s] = run.scale * sum;
}

// One thread per token, which looks up its segment: the bounds are few and stay in the cache.
struct Spread {
  SpreadRun run;
  __device__ void operator()(int64_t, int64_t token) const {
    float value = 0.0F;
    for (int64_t s = 0; s < run.segments; ++s)
      if (run.bounds[2 * s] <= token && token < run.bounds[2 * s + 1])
        value = run.scale * run.sums[s];
    run.values[token] = value;
  }
};

template <int kCount>
struct WeighEachRow {
  WeighRowsRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> value = load<kCount>(run.x, row * run.x.stride + column);
    for (int j = 0; j < kCount; ++j) value.at[j] *= run.weights[row];
    store(run.y, row * run.y.stride + column, value);
  }
};

}  // namespace

void sum_segments(const SegmentSumsRun& run, cudaStream_t stream) {
  if (run.segments == 0) return;
  LaunchShape shape;
  shape.block.x = kSumThreads;
  shape.grid.x = static_cast<uint32_t>(run.segments);
  launch(sum_segments_kernel, shape, stream, run);
}

void spread_segments(const SpreadRun& run, cudaStream_t stream) {
  over_items(Spread{run}, 1, run.tokens, stream);
}

void weigh_rows(const WeighRowsRun& run, cudaStream_t stream) {
  over_elements<WeighEachRow>(run, stream);
}

}  // namespace snug::backends::cuda
