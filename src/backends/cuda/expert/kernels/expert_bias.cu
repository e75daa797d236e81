#include "backends/cuda/expert/kernels/expert_bias.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

// Finds the expert that has a row, by bisection over the ends of ranges.
__device__ int64_t expert_with_row(const int32_t* bounds, int64_t experts, int64_t row) {
  int64_t low = 0;
  int64_t high = experts - 1;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (bounds[2 * middle + 1] <= row)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

template <int kCount>
struct AddBiasOfExpert {
  AddExpertBiasRun run;
  __device__ void operator()(int64_t i, int64_t item) const {
    const int64_t column = item * kCount;
    const int64_t row = run.places == nullptr ? i : run.places[i];
    const float weight = run.weights == nullptr ? 1.0F : run.weights[i];
    const int64_t expert = expert_with_row(run.bounds, run.experts, row);
    Elements<kCount> y = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> bias = load<kCount>(run.bias, expert * run.bias.stride + column);
    for (int j = 0; j < kCount; ++j) y.at[j] += weight * bias.at[j];
    store(run.y, row * run.y.stride + column, y);
  }
};

struct WeightsByRow {
  ExpertBiasGradRun run;
  __device__ void operator()(int64_t, int64_t i) const {
    run.by_row[run.places[i]] = run.weights[i];
  }
};

constexpr uint32_t kBiasRows = 8;  // rows that a block reads at once

// One block for each expert and kLanes columns.
__global__ void expert_bias_grad_kernel(ExpertBiasGradRun run) {
  __shared__ float sums[kBiasRows][kLanes];
  const int64_t column = int64_t{blockIdx.x} * kLanes + threadIdx.x;
  const int64_t expert = blockIdx.y;
  const int64_t end = run.bounds[2 * expert + 1];
  float sum = 0.0F;
  if (column < run.columns)
    for (int64_t row = run.bounds[2 * expert] + int64_t{threadIdx.y}; row < end; row += kBiasRows) {
      const float value = load_one(run.dy, row * run.dy.stride + column);
      sum += run.by_row == nullptr ? value : run.by_row[row] * value;
    }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= run.columns) return;
  for (uint32_t i = 1; i < kBiasRows; ++i) sum += sums[i][threadIdx.x];
  store_one(run.dbias, expert * run.dbias.stride + column, sum);
}

// One block per row.
template <int kCount>
__global__ void expert_bias_weights_grad_kernel(ExpertBiasWeightsGradRun run) {
  const int64_t i = blockIdx.x;
  const int64_t row = run.places[i];
  const int64_t expert = expert_with_row(run.bounds, run.experts, row);
  float sum = 0.0F;
  for (int64_t column = int64_t{threadIdx.x} * kCount; column < run.walk.columns;
       column += int64_t{blockDim.x} * kCount) {
    const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> bias = load<kCount>(run.bias, expert * run.bias.stride + column);
    for (int j = 0; j < kCount; ++j) sum += dy.at[j] * bias.at[j];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) run.dweights[i] = sum;
}

}  // namespace

void add_expert_bias(const AddExpertBiasRun& run, cudaStream_t stream) {
  over_elements<AddBiasOfExpert>(run, stream);
}

void expert_bias_grad(const ExpertBiasGradRun& run, cudaStream_t stream) {
  if (run.columns == 0) return;
  if (run.by_row != nullptr) over_items(WeightsByRow{run}, 1, run.rows, stream);
  LaunchShape shape;
  shape.block = {kLanes, kBiasRows, 1};
  shape.grid.x = static_cast<uint32_t>(ceil_div(run.columns, kLanes));
  shape.grid.y = static_cast<uint32_t>(run.experts);
  launch(expert_bias_grad_kernel, shape, stream, run);
}

void expert_bias_weights_grad(const ExpertBiasWeightsGradRun& run, cudaStream_t stream) {
  if (run.walk.rows == 0) return;
  const int64_t elements = run.walk.vectors ? kVectorElements : 1;
  LaunchShape shape;
  shape.block.x = row_threads(ceil_div(run.walk.columns, elements));
  shape.grid.x = static_cast<uint32_t>(run.walk.rows);
  launch(run.walk.vectors ? expert_bias_weights_grad_kernel<kVectorElements>
                          : expert_bias_weights_grad_kernel<1>,
         shape, stream, run);
}

}  // namespace snug::backends::cuda
