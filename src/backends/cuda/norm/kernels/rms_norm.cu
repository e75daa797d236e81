#include "backends/cuda/norm/kernels/rms_norm.h"

#include "backends/cuda/norm/kernels/norm_gradient.cuh"

namespace snug::backends::cuda {
namespace {

template <int kCount>
__device__ float squares_of(const DeviceRows& x, int64_t row, int64_t columns) {
  float squares = 0.0F;
  over_row<kCount>(columns, [&](int64_t column) {
    const Elements<kCount> value = load<kCount>(x, row * x.stride + column);
    for (int i = 0; i < kCount; ++i) squares += value.at[i] * value.at[i];
  });
  return block_sum(squares);
}

template <int kCount>
__global__ void rms_norm_kernel(RmsNormRun run) {
  const int64_t row = blockIdx.x;
  const float root =
      root_of(squares_of<kCount>(run.x, row, run.walk.columns), run.walk.columns, run.epsilon);
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    Elements<kCount> value = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> weight = load<kCount>(run.weight, column);
    for (int i = 0; i < kCount; ++i) value.at[i] *= root * (weight.at[i] + run.offset);
    store(run.y, row * run.y.stride + column, value);
  });
}

// The gradient of a row. With r the reciprocal root and w the weight plus its offset: dx = r (dy w
// - x r^2 mean(dy w x)) + addend, and the row contributes dy x r to the weight's gradient. Two
// kernels use this function, so fused operations are written explicitly: otherwise the compiler
// might fuse differently in each, and dx would not have the same bits with and without a weight
// gradient.
template <int kCount>
__device__ void row_gradient(const RmsNormGradRun& run, int64_t row,
                             const WeightSums<kCount>& weight_sums) {
  const auto columns = static_cast<float>(run.walk.columns);
  float sums[2] = {0.0F, 0.0F};  // the sums of x^2 and of dy w x
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    const auto [x, dy, weight] = norm_operands<kCount>(run, row, column);
    for (int i = 0; i < kCount; ++i) {
      sums[0] = __fmaf_rn(x.at[i], x.at[i], sums[0]);
      sums[1] = __fmaf_rn(dy.at[i] * (weight.at[i] + run.offset), x.at[i], sums[1]);
    }
  });
  block_sums(sums);
  const float root = root_of(sums[0], run.walk.columns, run.epsilon);
  const float slope = root * root * (sums[1] / columns);
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    const auto [x, dy, weight] = norm_operands<kCount>(run, row, column);
    Elements<kCount> dx = norm_addend<kCount>(run, row, column);
    for (int i = 0; i < kCount; ++i) {
      const float direct = __fmul_rn(dy.at[i], weight.at[i] + run.offset);
      dx.at[i] = __fmaf_rn(root, __fmaf_rn(-x.at[i], slope, direct), dx.at[i]);
      if (weight_sums.sums != nullptr) weight_sums.at(column, i) += dy.at[i] * x.at[i] * root;
    }
    store(run.dx, row * run.dx.stride + column, dx);
  });
}

template <int kCount>
__global__ void rms_norm_grad_kernel(RmsNormGradRun run) {
  row_gradient<kCount>(run, blockIdx.x, {});
}

template <int kCount>
__global__ void rms_norm_weight_grad_kernel(RmsNormGradRun run, float* partials) {
  block_gradient<kCount>(run.walk, partials, [&](int64_t row, const WeightSums<kCount>& sums) {
    row_gradient<kCount>(run, row, sums);
  });
}

}  // namespace

void rms_norm(const RmsNormRun& run, cudaStream_t stream) {
  launch_norm<RmsNormRun>({rms_norm_kernel<kVectorElements>, rms_norm_kernel<1>}, run, stream);
}

void rms_norm_grad(const RmsNormGradRun& run, cudaStream_t stream) {
  launch_norm<RmsNormGradRun>({rms_norm_grad_kernel<kVectorElements>, rms_norm_grad_kernel<1>}, run,
                              stream);
}

void rms_norm_weight_grad(const RmsNormGradRun& run, const NormWeightGrad& weight,
                          cudaStream_t stream) {
  launch_norm_weight_grad<RmsNormGradRun>(
      {rms_norm_weight_grad_kernel<kVectorElements>, rms_norm_weight_grad_kernel<1>}, run, weight,
      stream);
}

}  // namespace snug::backends::cuda
