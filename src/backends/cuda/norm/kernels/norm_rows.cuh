// Shared by norms: the root mean square of a row, how a block goes through a row, and the sums for
// the weight's gradient.
#pragma once

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {

// 1 / sqrt(mean of squares + epsilon).
__device__ inline float root_of(float squares, int64_t columns, float epsilon) {
  return 1.0F / sqrtf(squares / static_cast<float>(columns) + epsilon);
}

// Calls f(column) for this thread's columns of a row, kCount at a time.
template <int kCount, typename F>
__device__ inline void over_row(int64_t columns, F&& f) {
  const int64_t step = int64_t{blockDim.x} * kCount;
  for (int64_t column = int64_t{threadIdx.x} * kCount; column < columns; column += step) f(column);
}

// Sums over columns in shared memory; each is accessed only by the thread that has the column.
// Adjacent columns of a thread are stored apart, so that the lanes of a warp use different banks.
template <int kCount>
struct WeightSums {
  float* sums = nullptr;  // null if not wanted
  int64_t apart = 0;

  __device__ float& at(int64_t column, int i) const { return sums[i * apart + column / kCount]; }
};

// One block per row, or per several rows.
inline LaunchShape norm_rows_shape(const Walk& walk, int64_t blocks) {
  LaunchShape shape;
  shape.block.x = row_threads(walk.vectors ? walk.columns / kVectorElements : walk.columns);
  shape.grid.x = static_cast<uint32_t>(blocks);
  return shape;
}

}  // namespace snug::backends::cuda
