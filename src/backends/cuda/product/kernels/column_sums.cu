// y[column] (+)= the sum over rows of value(row, column), in two stages: one sum per block of rows,
// then the sum of the blocks in order. The bits depend only on the number of rows. Where adjacent
// columns share a sum, one block of threads adds them up.
#include "backends/cuda/product/kernels/column_sums.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/norm/kernels/norm_rows.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kColumnSumRows = 8;  // rows that a block reads at once

template <typename Value>
__global__ void column_partials_kernel(Value value, ColumnSumsRun run) {
  __shared__ float sums[kColumnSumRows][kLanes];
  const int64_t column = int64_t{blockIdx.x} * kLanes + threadIdx.x;
  const int64_t block_rows = column_sum_block_rows(run.rows);
  const int64_t begin = int64_t{blockIdx.y} * block_rows;
  const int64_t end = begin + block_rows < run.rows ? begin + block_rows : run.rows;
  float sum = 0.0F;
  if (column < run.columns)
    for (int64_t row = begin + threadIdx.y; row < end; row += kColumnSumRows)
      sum += value(row, column);
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= run.columns) return;
  for (uint32_t i = 1; i < kColumnSumRows; ++i) sum += sums[i][threadIdx.x];
  run.partials[int64_t{blockIdx.y} * run.columns + column] = sum;
}

struct AddColumnPartials {
  ColumnSumsRun run;
  __device__ void operator()(int64_t, int64_t column) const {
    float sum = 0.0F;
    for (int64_t block = 0; block < column_sum_blocks(run.rows); ++block)
      sum += run.partials[block * run.columns + column];
    if (run.accumulate) sum += load_one(run.y, column);
    store_one(run.y, column, sum);
  }
};

// One block of threads per sum.
__global__ void add_wide_partials_kernel(ColumnSumsRun run) {
  const int64_t first = int64_t{blockIdx.x} * run.width;
  float sum = 0.0F;
  over_row<1>(run.width, [&](int64_t column) {
    for (int64_t block = 0; block < column_sum_blocks(run.rows); ++block)
      sum += run.partials[block * run.columns + first + column];
  });
  sum = block_sum(sum);
  if (threadIdx.x > 0) return;
  if (run.accumulate) sum += load_one(run.y, blockIdx.x);
  store_one(run.y, blockIdx.x, sum);
}

template <typename Value>
void column_sums(const Value& value, const ColumnSumsRun& run, cudaStream_t stream) {
  if (run.columns == 0) return;
  LaunchShape shape;
  shape.block = {kLanes, kColumnSumRows, 1};
  shape.grid.x = static_cast<uint32_t>(ceil_div(run.columns, kLanes));
  shape.grid.y = static_cast<uint32_t>(column_sum_blocks(run.rows));
  if (run.rows > 0) launch(column_partials_kernel<Value>, shape, stream, value, run);
  if (run.width == 1) return over_items(AddColumnPartials{run}, 1, run.columns, stream);
  const int64_t sums = run.columns / run.width;
  launch(add_wide_partials_kernel, norm_rows_shape({sums, run.width, false}, sums), stream, run);
}

struct ElementOf {
  DeviceRows x;
  __device__ float operator()(int64_t row, int64_t column) const {
    return load_one(x, row * x.stride + column);
  }
};

struct ProductOf {
  ColumnProducts of;
  int64_t width;
  __device__ float operator()(int64_t row, int64_t column) const {
    const float product =
        load_one(of.dy, row * of.dy.stride + column) * load_one(of.x, row * of.x.stride + column);
    return of.divisor.data == nullptr ? product : product / load_one(of.divisor, column / width);
  }
};

}  // namespace

void sum_products(const ColumnProducts& products, const ColumnSumsRun& run, cudaStream_t stream) {
  column_sums(ProductOf{products, run.width}, run, stream);
}

void sum_rows(const DeviceRows& x, const ColumnSumsRun& run, cudaStream_t stream) {
  column_sums(ElementOf{x}, run, stream);
}

}  // namespace snug::backends::cuda
