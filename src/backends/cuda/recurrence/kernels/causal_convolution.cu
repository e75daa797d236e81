#include "backends/cuda/recurrence/kernels/causal_convolution.h"

#include "backends/cuda/elementwise/kernels/activations.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/recurrence/kernels/segment_taps.h"

namespace snug::backends::cuda {
namespace {

// The filter of the token `back` before.
__device__ float filter_at(const CausalConvolutionRun& run, int64_t column, int64_t back) {
  return load_one(run.w, column * run.w.stride + run.width - 1 - back);
}

__device__ float convolved(const CausalConvolutionRun& run, int64_t row, int64_t column) {
  float sum = 0.0F;
  for (int64_t k = 0; k < run.taps[row]; ++k)
    sum += filter_at(run, column, k) * load_one(run.x, (row - k) * run.x.stride + column);
  return sum;
}

// Where a segment's sequence keeps a row, of its last width - 1.
__device__ int64_t kept_at(const CausalConvolutionRun& run, int64_t segment, int64_t row,
                           int64_t column) {
  return run.slots[2 * segment] * run.state.stride + row * run.columns + column;
}

// What the rows before the segment add to a row that sees fewer than width within it.
__device__ float convolved_before(const CausalConvolutionRun& run, int64_t row, int64_t column) {
  const int64_t taps = run.taps[row];
  if (taps == 0 || taps == run.width) return 0.0F;
  const int64_t begin = row - taps + 1;
  int64_t segment = 0;
  while (run.bounds[2 * segment] != begin || run.bounds[2 * segment + 1] <= begin) ++segment;
  if (run.slots[2 * segment + 1] == 0) return 0.0F;
  float sum = 0.0F;
  for (int64_t k = taps; k < run.width; ++k)
    sum += filter_at(run, column, k) *
           load_one(run.state, kept_at(run, segment, run.width - 1 - (k - taps + 1), column));
  return sum;
}

struct Convolve {
  CausalConvolutionRun run;
  __device__ void operator()(int64_t row, int64_t column) const {
    float sum = convolved(run, row, column);
    if (run.slots != nullptr) sum += convolved_before(run, row, column);
    store_one(run.y, row * run.y.stride + column, run.plain ? sum : sum * sigmoid(sum));
  }
};

// Keeps the last width - 1 rows of each sequence, of those kept before and its segment's.
struct KeepRows {
  CausalConvolutionRun run;
  __device__ void operator()(int64_t segment, int64_t column) const {
    const int64_t end = run.bounds[2 * segment + 1];
    const int64_t tokens = end - run.bounds[2 * segment];
    const int64_t kept = run.width - 1;
    if (tokens == 0) return;
    for (int64_t row = 0; row < kept; ++row) {
      const bool is_new = tokens >= kept - row;
      float value = 0.0F;
      if (is_new)
        value = load_one(run.x, (end - kept + row) * run.x.stride + column);
      else if (run.slots[2 * segment + 1] > 0)
        value = load_one(run.state, kept_at(run, segment, row + tokens, column));
      store_one(run.state, kept_at(run, segment, row, column), value);
    }
  }
};

// The gradient of what was convolved, before silu.
__device__ float convolved_slope(const CausalConvolutionGradRun& run, int64_t row, int64_t column) {
  const float dy = load_one(run.dy, row * run.dy.stride + column);
  if (run.forward.plain) return dy;
  const float sum = convolved(run.forward, row, column);
  const float s = sigmoid(sum);
  return dy * s * (1.0F + sum * (1.0F - s));
}

struct ConvolveBack {
  CausalConvolutionGradRun run;
  __device__ void operator()(int64_t row, int64_t column) const {
    const CausalConvolutionRun& forward = run.forward;
    float sum = 0.0F;
    for (int64_t k = 0; k < forward.width && row + k < forward.rows; ++k)
      if (forward.taps[row + k] > k)
        sum += filter_at(forward, column, k) * convolved_slope(run, row + k, column);
    store_one(run.dx, row * run.dx.stride + column, sum);
  }
};

// The sums of blocks of rows: items are the columns.
struct FilterPartials {
  CausalConvolutionGradRun run;
  __device__ void operator()(int64_t block, int64_t column) const {
    const CausalConvolutionRun& forward = run.forward;
    float* const sums = run.partials + (block * forward.columns + column) * forward.width;
    for (int64_t k = 0; k < forward.width; ++k) sums[k] = 0.0F;
    const int64_t begin = block * column_sum_block_rows(forward.rows);
    for (int64_t row = begin;
         row < begin + column_sum_block_rows(forward.rows) && row < forward.rows; ++row) {
      const int64_t taps = forward.taps[row];
      if (taps == 0) continue;
      const float slope = convolved_slope(run, row, column);
      for (int64_t k = 0; k < taps; ++k)
        sums[forward.width - 1 - k] +=
            slope * load_one(forward.x, (row - k) * forward.x.stride + column);
    }
  }
};

struct AddFilterPartials {
  CausalConvolutionGradRun run;
  __device__ void operator()(int64_t column, int64_t tap) const {
    const CausalConvolutionRun& forward = run.forward;
    const int64_t at = column * forward.width + tap;
    float sum = 0.0F;
    for (int64_t block = 0; block < column_sum_blocks(forward.rows); ++block)
      sum += run.partials[block * forward.columns * forward.width + at];
    store_one(run.dw, column * run.dw.stride + tap, sum);
  }
};

void find_taps(const CausalConvolutionRun& run, cudaStream_t stream) {
  count_segment_taps({run.bounds, run.segments, run.rows, run.width, run.taps}, stream);
}

}  // namespace

void causal_convolution(const CausalConvolutionRun& run, cudaStream_t stream) {
  find_taps(run, stream);
  over_items(Convolve{run}, run.rows, run.columns, stream);
  if (run.slots != nullptr) over_items(KeepRows{run}, run.segments, run.columns, stream);
}

void causal_convolution_grad(const CausalConvolutionGradRun& run, cudaStream_t stream) {
  const CausalConvolutionRun& forward = run.forward;
  find_taps(forward, stream);
  over_items(ConvolveBack{run}, forward.rows, forward.columns, stream);
  if (run.dw.data == nullptr) return;
  over_items(FilterPartials{run}, column_sum_blocks(forward.rows), forward.columns, stream);
  over_items(AddFilterPartials{run}, forward.columns, forward.width, stream);
}

}  // namespace snug::backends::cuda
