#include "backends/cuda/expert/kernels/expert_rows.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

// A row is read once and written k times.
template <int kCount>
struct PermuteRows {
  PermuteRun run;
  __device__ void operator()(int64_t token, int64_t item) const {
    const int64_t column = item * kCount;
    const Elements<kCount> value = load<kCount>(run.x, token * run.x.stride + column);
    for (int64_t i = token * run.k; i < (token + 1) * run.k; ++i)
      store(run.y, run.places[i] * run.y.stride + column, value);
  }
};

template <int kCount>
struct CombineRows {
  CombineRun run;
  __device__ void operator()(int64_t token, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> sum{};
    for (int64_t i = token * run.k; i < (token + 1) * run.k; ++i) {
      const Elements<kCount> value = load<kCount>(run.x, run.places[i] * run.x.stride + column);
      for (int j = 0; j < kCount; ++j) sum.at[j] += value.at[j];
    }
    store(run.y, token * run.y.stride + column, sum);
  }
};

template <int kCount>
struct ScaleEachRow {
  ScaleRowsRun run;
  __device__ void operator()(int64_t i, int64_t item) const {
    const int64_t column = item * kCount;
    const int64_t row = run.places[i];
    Elements<kCount> value = load<kCount>(run.x, row * run.x.stride + column);
    for (int j = 0; j < kCount; ++j) value.at[j] *= run.weights[i];
    store(run.y, row * run.y.stride + column, value);
  }
};

// One block per row; a thread scales the elements that it has read for the dot product.
template <int kCount>
__global__ void scale_rows_grad_kernel(ScaleRowsGradRun run) {
  const int64_t i = blockIdx.x;
  const int64_t row = run.places[i];
  const float weight = run.weights[i];
  float sum = 0.0F;
  for (int64_t column = int64_t{threadIdx.x} * kCount; column < run.walk.columns;
       column += int64_t{blockDim.x} * kCount) {
    Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
    for (int j = 0; j < kCount; ++j) {
      sum += dy.at[j] * x.at[j];
      dy.at[j] *= weight;
    }
    store(run.dx, row * run.dx.stride + column, dy);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) run.dweights[i] = sum;
}

}  // namespace

void permute_rows(const PermuteRun& run, cudaStream_t stream) {
  over_elements<PermuteRows>(run, stream);
}

void combine_rows(const CombineRun& run, cudaStream_t stream) {
  over_elements<CombineRows>(run, stream);
}

void scale_rows(const ScaleRowsRun& run, cudaStream_t stream) {
  over_elements<ScaleEachRow>(run, stream);
}

void scale_rows_grad(const ScaleRowsGradRun& run, cudaStream_t stream) {
  if (run.walk.rows == 0) return;
  const int64_t elements = run.walk.vectors ? kVectorElements : 1;
  LaunchShape shape;
  shape.block.x = row_threads(ceil_div(run.walk.columns, elements));
  shape.grid.x = static_cast<uint32_t>(run.walk.rows);
  launch(run.walk.vectors ? scale_rows_grad_kernel<kVectorElements> : scale_rows_grad_kernel<1>,
         shape, stream, run);
}

}  // namespace snug::backends::cuda
