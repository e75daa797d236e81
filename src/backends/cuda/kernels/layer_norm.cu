#include "backends/cuda/kernels/layer_norm.h"

#include "backends/cuda/kernels/norm_rows.cuh"

namespace snug::backends::cuda {
namespace {

// The mean of a row, and 1 / sqrt(variance + epsilon).
struct RowStatistics {
  float mean, root;
};

// The variance is of differences from the mean: a mean of squares would lose what is small next to
// the mean.
template <int kCount>
__device__ RowStatistics statistics_of(const DeviceRows& x, int64_t row, int64_t columns,
                                       float epsilon) {
  float sum = 0.0F;
  over_row<kCount>(columns, [&](int64_t column) {
    const Elements<kCount> value = load<kCount>(x, row * x.stride + column);
    for (int i = 0; i < kCount; ++i) sum += value.at[i];
  });
  const float mean = block_sum(sum) / static_cast<float>(columns);
  float squares = 0.0F;
  over_row<kCount>(columns, [&](int64_t column) {
    const Elements<kCount> value = load<kCount>(x, row * x.stride + column);
    for (int i = 0; i < kCount; ++i) squares += (value.at[i] - mean) * (value.at[i] - mean);
  });
  return {mean, root_of(block_sum(squares), columns, epsilon)};
}

template <int kCount>
__global__ void layer_norm_kernel(LayerNormRun run) {
  const int64_t row = blockIdx.x;
  const RowStatistics statistics = statistics_of<kCount>(run.x, row, run.walk.columns, run.epsilon);
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    Elements<kCount> value = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> weight = load<kCount>(run.weight, column);
    Elements<kCount> bias{};
    if (run.bias.data != nullptr) bias = load<kCount>(run.bias, column);
    for (int i = 0; i < kCount; ++i)
      value.at[i] = (value.at[i] - statistics.mean) * statistics.root * weight.at[i] + bias.at[i];
    store(run.y, row * run.y.stride + column, value);
  });
}

// The gradient of a row. With r the root, n = r (x - mean) and g = dy w, dx = r (g - mean(g) - n
// mean(g n)) + addend, and the row's share dy n of the weight's gradient. What is fused is written
// out, as in rms_norm.cu.
template <int kCount>
__device__ void row_gradient(const LayerNormGradRun& run, int64_t row,
                             const WeightSums<kCount>& weight_sums) {
  const auto columns = static_cast<float>(run.walk.columns);
  const RowStatistics statistics = statistics_of<kCount>(run.x, row, run.walk.columns, run.epsilon);
  float sums[2] = {0.0F, 0.0F};  // of g, of g n
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    const Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> weight = load<kCount>(run.weight, column);
    for (int i = 0; i < kCount; ++i) {
      const float g = __fmul_rn(dy.at[i], weight.at[i]);
      sums[0] += g;
      sums[1] = __fmaf_rn(g, (x.at[i] - statistics.mean) * statistics.root, sums[1]);
    }
  });
  block_sums(sums);
  const float mean = sums[0] / columns;
  const float mean_product = sums[1] / columns;
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    const Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> weight = load<kCount>(run.weight, column);
    Elements<kCount> dx{};
    if (run.addend.data != nullptr) dx = load<kCount>(run.addend, row * run.addend.stride + column);
    for (int i = 0; i < kCount; ++i) {
      const float normalised = (x.at[i] - statistics.mean) * statistics.root;
      const float direct = __fmul_rn(dy.at[i], weight.at[i]) - mean;
      const float slope = __fmaf_rn(-normalised, mean_product, direct);
      dx.at[i] = __fmaf_rn(statistics.root, slope, dx.at[i]);
      if (weight_sums.sums != nullptr) weight_sums.at(column, i) += dy.at[i] * normalised;
    }
    store(run.dx, row * run.dx.stride + column, dx);
  });
}

template <int kCount>
__global__ void layer_norm_grad_kernel(LayerNormGradRun run) {
  row_gradient<kCount>(run, blockIdx.x, {});
}

// A block has norm_block_rows.
template <int kCount>
__global__ void layer_norm_weight_grad_kernel(LayerNormGradRun run, float* partials) {
  const Walk& walk = run.walk;
  const WeightSums<kCount> sums{shared_memory<float>(), walk.columns / kCount};
  over_row<kCount>(walk.columns, [&](int64_t column) {
    for (int i = 0; i < kCount; ++i) sums.at(column, i) = 0.0F;
  });
  const int64_t block_rows = norm_block_rows(walk.rows, walk.columns);
  const int64_t begin = blockIdx.x * block_rows;
  const int64_t end = begin + block_rows < walk.rows ? begin + block_rows : walk.rows;
  for (int64_t row = begin; row < end; ++row) row_gradient<kCount>(run, row, sums);
  over_row<kCount>(walk.columns, [&](int64_t column) {
    Elements<kCount> total{};
    for (int i = 0; i < kCount; ++i) total.at[i] = sums.at(column, i);
    store(DeviceRows{partials, walk.columns}, blockIdx.x * walk.columns + column, total);
  });
}

}  // namespace

void layer_norm(const LayerNormRun& run, cudaStream_t stream) {
  if (run.walk.rows == 0) return;
  launch(run.walk.vectors ? layer_norm_kernel<kVectorElements> : layer_norm_kernel<1>,
         norm_rows_shape(run.walk, run.walk.rows), stream, run);
}

void layer_norm_grad(const LayerNormGradRun& run, cudaStream_t stream) {
  if (run.walk.rows == 0) return;
  launch(run.walk.vectors ? layer_norm_grad_kernel<kVectorElements> : layer_norm_grad_kernel<1>,
         norm_rows_shape(run.walk, run.walk.rows), stream, run);
}

void layer_norm_weight_grad(const LayerNormGradRun& run, const LayerNormWeightGrad& weight,
                            cudaStream_t stream) {
  const Walk& walk = run.walk;
  const int64_t blocks = norm_blocks(walk.rows, walk.columns);
  if (walk.rows > 0) {
    LaunchShape shape = norm_rows_shape(walk, blocks);
    shape.shared_bytes = static_cast<int32_t>(norm_shared_bytes(walk.columns));
    launch(walk.vectors ? layer_norm_weight_grad_kernel<kVectorElements>
                        : layer_norm_weight_grad_kernel<1>,
           shape, stream, run, weight.partials);
  }
  sum_rows({weight.partials, walk.columns},
           {blocks, walk.columns, weight.column_partials, weight.dw, weight.accumulate}, stream);
}

}  // namespace snug::backends::cuda
