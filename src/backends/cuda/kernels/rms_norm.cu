#include "backends/cuda/kernels/rms_norm.h"

#include "backends/cuda/kernels/column_sums.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

// Calls f(column) for this thread's share of a row's columns, kCount at a time.
template <int kCount, typename F>
__device__ void over_row(int64_t columns, F&& f) {
  const int64_t step = int64_t{blockDim.x} * kCount;
  for (int64_t column = int64_t{threadIdx.x} * kCount; column < columns; column += step) f(column);
}

// 1 / sqrt(mean of squares + epsilon).
__device__ float root_of(float squares, int64_t columns, float epsilon) {
  return 1.0F / sqrtf(squares / static_cast<float>(columns) + epsilon);
}

template <int kCount>
__device__ float squares_of(const Operand& x, int64_t row, int64_t columns) {
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
    for (int i = 0; i < kCount; ++i) value.at[i] *= root * weight.at[i];
    store(run.y, row * run.y.stride + column, value);
  });
}

// With r the root: dx = r (dy w - x r^2 mean(dy w x)) + addend.
template <int kCount>
__global__ void rms_norm_grad_kernel(RmsNormGradRun run) {
  const int64_t row = blockIdx.x;
  const auto columns = static_cast<float>(run.walk.columns);
  float sums[2] = {0.0F, 0.0F};  // of x^2, of dy w x
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    const Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> weight = load<kCount>(run.weight, column);
    for (int i = 0; i < kCount; ++i) {
      sums[0] += x.at[i] * x.at[i];
      sums[1] += dy.at[i] * weight.at[i] * x.at[i];
    }
  });
  block_sums(sums);
  const float root = root_of(sums[0], run.walk.columns, run.epsilon);
  const float slope = root * root * (sums[1] / columns);
  over_row<kCount>(run.walk.columns, [&](int64_t column) {
    const Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> dy = load<kCount>(run.dy, row * run.dy.stride + column);
    const Elements<kCount> weight = load<kCount>(run.weight, column);
    Elements<kCount> dx{};
    if (run.addend.data != nullptr) dx = load<kCount>(run.addend, row * run.addend.stride + column);
    for (int i = 0; i < kCount; ++i) dx.at[i] += root * (dy.at[i] * weight.at[i] - x.at[i] * slope);
    store(run.dx, row * run.dx.stride + column, dx);
  });
}

template <int kCount>
__global__ void roots_kernel(RmsNormGradRun run, float* roots) {
  const int64_t row = blockIdx.x;
  const float squares = squares_of<kCount>(run.x, row, run.walk.columns);
  if (threadIdx.x == 0) roots[row] = root_of(squares, run.walk.columns, run.epsilon);
}

struct WeightGradient {
  Operand dy, x;
  const float* roots;
  __device__ float operator()(int64_t row, int64_t column) const {
    return load_one(dy, row * dy.stride + column) * load_one(x, row * x.stride + column) *
           roots[row];
  }
};

// A block a row.
LaunchShape shape_of(const Walk& walk) {
  LaunchShape shape;
  shape.block.x = row_threads(walk.vectors ? walk.columns / kVectorElements : walk.columns);
  shape.grid.x = static_cast<uint32_t>(walk.rows);
  return shape;
}

}  // namespace

void rms_norm(const RmsNormRun& run, cudaStream_t stream) {
  if (run.walk.rows == 0) return;
  launch(run.walk.vectors ? rms_norm_kernel<kVectorElements> : rms_norm_kernel<1>,
         shape_of(run.walk), stream, run);
}

void rms_norm_grad(const RmsNormGradRun& run, cudaStream_t stream) {
  if (run.walk.rows == 0) return;
  launch(run.walk.vectors ? rms_norm_grad_kernel<kVectorElements> : rms_norm_grad_kernel<1>,
         shape_of(run.walk), stream, run);
}

void rms_norm_weight_grad(const RmsNormGradRun& run, float* roots, const ColumnSumsRun& sums,
                          cudaStream_t stream) {
  if (run.walk.rows > 0)
    launch(run.walk.vectors ? roots_kernel<kVectorElements> : roots_kernel<1>, shape_of(run.walk),
           stream, run, roots);
  column_sums(WeightGradient{run.dy, run.x, roots}, sums, stream);
}

}  // namespace snug::backends::cuda
