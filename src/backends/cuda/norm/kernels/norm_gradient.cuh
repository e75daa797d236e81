// Shared by the gradients of both norms: the operands of a column, a block's sums for the weight's
// gradient, and the launches. Each norm defines row_gradient(row, sums), which computes a row of dx
// and adds the row's contribution to sums where they are wanted.
#pragma once

#include "backends/cuda/norm/kernels/norm_rows.cuh"
#include "backends/cuda/norm/kernels/norm_weight_grad.h"
#include "backends/cuda/product/kernels/column_sums.h"

namespace snug::backends::cuda {

// A row's operands in a column and the kCount - 1 columns after it.
template <int kCount>
struct NormOperands {
  Elements<kCount> x, dy, weight;
};

template <int kCount, typename Run>
__device__ inline NormOperands<kCount> norm_operands(const Run& run, int64_t row, int64_t column) {
  return {load<kCount>(run.x, row * run.x.stride + column),
          load<kCount>(run.dy, row * run.dy.stride + column), load<kCount>(run.weight, column)};
}

// The addend of the gradient.
template <int kCount, typename Run>
__device__ inline Elements<kCount> norm_addend(const Run& run, int64_t row, int64_t column) {
  Elements<kCount> addend{};
  if (run.addend.data != nullptr)
    addend = load<kCount>(run.addend, row * run.addend.stride + column);
  return addend;
}

// Computes the gradients of a block's norm_block_rows rows, and writes the sum of their
// contributions to the weight's gradient as one row of `partials`.
template <int kCount, typename RowGradient>
__device__ inline void block_gradient(const Walk& walk, float* partials,
                                      const RowGradient& row_gradient) {
  const WeightSums<kCount> sums{shared_memory<float>(), walk.columns / kCount};
  over_row<kCount>(walk.columns, [&](int64_t column) {
    for (int i = 0; i < kCount; ++i) sums.at(column, i) = 0.0F;
  });
  const int64_t block_rows = norm_block_rows(walk.rows, walk.columns);
  const int64_t begin = blockIdx.x * block_rows;
  const int64_t end = begin + block_rows < walk.rows ? begin + block_rows : walk.rows;
  for (int64_t row = begin; row < end; ++row) row_gradient(row, sums);
  over_row<kCount>(walk.columns, [&](int64_t column) {
    Elements<kCount> total{};
    for (int i = 0; i < kCount; ++i) total.at[i] = sums.at(column, i);
    store(DeviceRows{partials, walk.columns}, blockIdx.x * walk.columns + column, total);
  });
}

// Both forms of a kernel: for rows that are read as vectors, and element by element.
template <typename Kernel>
struct NormKernels {
  Kernel of_vectors, of_elements;

  Kernel of(const Walk& walk) const { return walk.vectors ? of_vectors : of_elements; }
};

// One block per row.
template <typename Run>
void launch_norm(const NormKernels<void (*)(Run)>& kernels, const Run& run, cudaStream_t stream) {
  if (run.walk.rows == 0) return;
  launch(kernels.of(run.walk), norm_rows_shape(run.walk, run.walk.rows), stream, run);
}

// For kernels whose blocks each call block_gradient.
template <typename Run>
void launch_norm_weight_grad(const NormKernels<void (*)(Run, float*)>& kernels, const Run& run,
                             const NormWeightGrad& weight, cudaStream_t stream) {
  const Walk& walk = run.walk;
  const int64_t blocks = norm_blocks(walk.rows, walk.columns);
  if (walk.rows > 0) {
    LaunchShape shape = norm_rows_shape(walk, blocks);
    shape.shared_bytes = static_cast<int32_t>(norm_shared_bytes(walk.columns));
    launch(kernels.of(walk), shape, stream, run, weight.partials);
  }
  sum_rows({weight.partials, walk.columns},
           {blocks, walk.columns, weight.column_partials, weight.dw, weight.accumulate}, stream);
}

}  // namespace snug::backends::cuda
