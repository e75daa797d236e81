#include "backends/cuda/norm/kernels/layer_norm.h"

#include "backends/cuda/norm/kernels/norm_gradient.cuh"

namespace snug::backends::cuda {
namespace {

// The mean of a row and the reciprocal root 1 / sqrt(variance + epsilon).
struct RowStatistics {
  float mean, root;
};

// The variance is the mean square of differences from the mean, since a mean of squares would lose
// values that are small compared with the mean.
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

// The gradient of a row. With r the reciprocal root, n = r (x - mean) and g = dy w: dx = r (g -
// mean(g) - n mean(g n)) + addend, and the row contributes dy n to the weight's gradient. Fused
// operations are written explicitly, as in rms_norm.cu.
template <int kCount>
__device__ void row_gradient(const LayerNormGradRun& run, int64_t row,
                             const WeightSums<kCount>& weight_sums) {
  const auto columns = static_cast<float>(run.walk.columns);
  const RowStatistics statistics = statistics_of<kCount>(run.x, row, run.walk.columns, run.epsilon);
  float sums[2] = {0.0F, 0.0F};  // the sums of g and of g n
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    const auto [x, dy, weight] = norm_operands<kCount>(run, row, column);
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
    const auto [x, dy, weight] = norm_operands<kCount>(run, row, column);
    Elements<kCount> dx = norm_addend<kCount>(run, row, column);
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

template <int kCount>
__global__ void layer_norm_weight_grad_kernel(LayerNormGradRun run, float* partials) {
  block_gradient<kCount>(run.walk, partials, [&](int64_t row, const WeightSums<kCount>& sums) {
    row_gradient<kCount>(run, row, sums);
  });
}

}  // namespace

void layer_norm(const LayerNormRun& run, cudaStream_t stream) {
  launch_norm<LayerNormRun>({layer_norm_kernel<kVectorElements>, layer_norm_kernel<1>}, run,
                            stream);
}

void layer_norm_grad(const LayerNormGradRun& run, cudaStream_t stream) {
  launch_norm<LayerNormGradRun>(
      {layer_norm_grad_kernel<kVectorElements>, layer_norm_grad_kernel<1>}, run, stream);
}

void layer_norm_weight_grad(const LayerNormGradRun& run, const NormWeightGrad& weight,
                            cudaStream_t stream) {
  launch_norm_weight_grad<LayerNormGradRun>(
      {layer_norm_weight_grad_kernel<kVectorElements>, layer_norm_weight_grad_kernel<1>}, run,
      weight, stream);
}

}  // namespace snug::backends::cuda
