// Stages, each of which is a launch: row moments; sums of squares over columns; column moments and
// their inverse roots; the mean row moment; sums of squares of the update; its root mean square;
// the step. For a vector the first, second and fourth stage are left out.
#include "backends/cuda/optimizer/kernels/adafactor.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/sizes.h"
#include "backends/formulas/decayed_share.h"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kAdafactorThreads = 256;

// Where the stages write their results in the scratch.
struct AdafactorScratch {
  float* inverse_columns;
  float* column_sums;  // (blocks of rows, columns)
  float* sizes;        // one sum of squares of the update per tile
  float* mean_row;
  float* clipping;  // the divisor that clips the update
};

__device__ AdafactorScratch scratch_of(const AdafactorRun& run) {
  AdafactorScratch scratch{};
  scratch.inverse_columns = run.scratch;
  scratch.column_sums = scratch.inverse_columns + run.columns;
  scratch.sizes =
      scratch.column_sums + (run.factored ? column_sum_blocks(run.rows) * run.columns : 0);
  scratch.mean_row = scratch.sizes + adafactor_tiles(run.rows, run.columns);
  scratch.clipping = scratch.mean_row + 1;
  return scratch;
}

__device__ bool is_skipped(const AdafactorRun& run) { return *run.factor != *run.factor; }

// The share of the new squares in the moments: step^decay_rate.
__device__ float new_share(const AdafactorRun& run) {
  return static_cast<float>(
      pow(static_cast<double>(*run.step), static_cast<double>(run.decay_rate)));
}

__device__ float square_at(const AdafactorRun& run, int64_t row, int64_t column) {
  const float g = load_one(run.gradient, row * run.columns + column) * *run.factor;
  return g * g + run.epsilon;
}

// One warp per row.
__global__ void row_moments_kernel(AdafactorRun run) {
  const int64_t row = int64_t{blockIdx.x} * (kAdafactorThreads / kLanes) + threadIdx.x / kLanes;
  if (row >= run.rows || is_skipped(run)) return;
  float sum = 0.0F;
  for (int64_t column = threadIdx.x % kLanes; column < run.columns; column += kLanes)
    sum += square_at(run, row, column);
  sum = warp_sum(sum);
  if (threadIdx.x % kLanes != 0) return;
  const float share = new_share(run);
  const float mean = sum / static_cast<float>(run.columns);
  run.row_moment[row] = run.row_moment[row] * (1.0F - share) + mean * share;
}

__global__ void column_squares_kernel(AdafactorRun run) {
  const int64_t column = int64_t{blockIdx.x} * kAdafactorThreads + threadIdx.x;
  if (column >= run.columns || is_skipped(run)) return;
  const int64_t block_rows = column_sum_block_rows(run.rows);
  const int64_t begin = int64_t{blockIdx.y} * block_rows;
  const int64_t end = begin + block_rows < run.rows ? begin + block_rows : run.rows;
  float sum = 0.0F;
  for (int64_t row = begin; row < end; ++row) sum += square_at(run, row, column);
  scratch_of(run).column_sums[int64_t{blockIdx.y} * run.columns + column] = sum;
}

struct AdvanceColumns {
  AdafactorRun run;
  __device__ void operator()(int64_t, int64_t column) const {
    if (is_skipped(run)) return;
    const AdafactorScratch scratch = scratch_of(run);
    float square = 0.0F;
    if (run.factored)
      for (int64_t block = 0; block < column_sum_blocks(run.rows); ++block)
        square += scratch.column_sums[block * run.columns + column];
    else
      square = square_at(run, 0, column);
    const float share = new_share(run);
    const float mean = square / static_cast<float>(run.rows);
    const float moment = run.column_moment[column] * (1.0F - share) + mean * share;
    run.column_moment[column] = moment;
    scratch.inverse_columns[column] = 1.0F / sqrtf(moment);
  }
};

// One block computes the mean; every thread gets it.
__device__ float mean_of(const float* values, int64_t count, int64_t divisor) {
  float sum = 0.0F;
  for (int64_t i = threadIdx.x; i < count; i += kAdafactorThreads) sum += values[i];
  return block_sum(sum) / static_cast<float>(divisor);
}

__global__ void mean_row_kernel(AdafactorRun run) {
  const float mean = mean_of(run.row_moment, run.rows, run.rows);
  if (threadIdx.x == 0) *scratch_of(run).mean_row = mean;
}

// Calls body(offset, update) for this thread's elements of a tile, which are one column of it.
template <typename Body>
__device__ void for_updates_of_tile(const AdafactorRun& run, const Body& body) {
  const AdafactorScratch scratch = scratch_of(run);
  const int64_t tiles_per_row = ceil_div(run.columns, kAdafactorTileColumns);
  const int64_t column = blockIdx.x % tiles_per_row * kAdafactorTileColumns + threadIdx.x;
  if (column >= run.columns) return;
  const int64_t begin = blockIdx.x / tiles_per_row * kAdafactorTileRows;
  const int64_t end = begin + kAdafactorTileRows < run.rows ? begin + kAdafactorTileRows : run.rows;
  const float of_column = scratch.inverse_columns[column];
  for (int64_t row = begin; row < end; ++row) {
    const float of_row = run.factored ? sqrtf(*scratch.mean_row / run.row_moment[row]) : 1.0F;
    const int64_t offset = row * run.columns + column;
    body(offset, load_one(run.gradient, offset) * *run.factor * of_row * of_column);
  }
}
static_assert(kAdafactorTileColumns == kAdafactorThreads);

__global__ void size_of_update_kernel(AdafactorRun run) {
  if (is_skipped(run)) return;
  float sum = 0.0F;
  for_updates_of_tile(run, [&](int64_t, float update) { sum += update * update; });
  sum = block_sum(sum);
  if (threadIdx.x == 0) scratch_of(run).sizes[blockIdx.x] = sum;
}

__global__ void clipping_kernel(AdafactorRun run) {
  if (is_skipped(run)) return;
  const AdafactorScratch scratch = scratch_of(run);
  const float square =
      mean_of(scratch.sizes, adafactor_tiles(run.rows, run.columns), run.rows * run.columns);
  if (threadIdx.x == 0) *scratch.clipping = fmaxf(1.0F, sqrtf(square) / run.clip_threshold);
}

__global__ void step_adafactor_kernel(AdafactorRun run) {
  if (is_skipped(run)) return;
  const float keep = decayed_share(*run.learning_rate, run.weight_decay);
  const float rate = *run.learning_rate / *scratch_of(run).clipping;
  for_updates_of_tile(run, [&](int64_t offset, float update) {
    const float next = run.master[offset] * keep - update * rate;
    run.master[offset] = next;
    if (run.weight.data != run.master) store_one(run.weight, offset, next);
  });
}

LaunchShape blocks_of(int64_t x, int64_t y = 1) {
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(x);
  shape.grid.y = static_cast<uint32_t>(y);
  shape.block.x = kAdafactorThreads;
  return shape;
}

}  // namespace

void adafactor(const AdafactorRun& run, cudaStream_t stream) {
  if (run.factored) {
    launch(row_moments_kernel, blocks_of(ceil_div(run.rows, kAdafactorThreads / kLanes)), stream,
           run);
    launch(column_squares_kernel,
           blocks_of(ceil_div(run.columns, kAdafactorThreads), column_sum_blocks(run.rows)), stream,
           run);
  }
  over_items(AdvanceColumns{run}, 1, run.columns, stream);
  if (run.factored) launch(mean_row_kernel, blocks_of(1), stream, run);
  const int64_t tiles = adafactor_tiles(run.rows, run.columns);
  launch(size_of_update_kernel, blocks_of(tiles), stream, run);
  launch(clipping_kernel, blocks_of(1), stream, run);
  launch(step_adafactor_kernel, blocks_of(tiles), stream, run);
}

}  // namespace snug::backends::cuda
