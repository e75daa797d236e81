#include "backends/cuda/kernels/rope.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

struct RotaryTable {
  RotaryTableRun run;
  __device__ void operator()(int64_t token, int64_t i) const {
    // In double: a float angle of 10^5 would lose five of its seven digits.
    const double angle = run.positions[token] * static_cast<double>(run.inverse_frequency[i]);
    float* row = run.table + token * 2 * run.half;
    row[i] = static_cast<float>(cos(angle)) * run.factor;
    row[run.half + i] = static_cast<float>(sin(angle)) * run.factor;
  }
};

// An item is kCount pairs: elements of the first half of a head with those of its second half.
template <int kCount>
struct Rope {
  RopeRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t half = run.head_dim / 2;
    const int64_t pairs = half / kCount;
    const int64_t head = item / pairs;
    const int64_t i = item % pairs * kCount;
    const int64_t column = head * run.head_dim + i;
    const Elements<kCount> low = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> high = load<kCount>(run.x, row * run.x.stride + column + half);
    Elements<kCount> low_turned = low;
    Elements<kCount> high_turned = high;
    if (head < run.turned_heads) {
      const Elements<kCount> cosine = load<kCount>(run.table, row * run.table.stride + i);
      const Elements<kCount> sine = load<kCount>(run.table, row * run.table.stride + half + i);
      for (int k = 0; k < kCount; ++k) {
        const float s = run.inverse ? -sine.at[k] : sine.at[k];
        low_turned.at[k] = low.at[k] * cosine.at[k] - high.at[k] * s;
        high_turned.at[k] = high.at[k] * cosine.at[k] + low.at[k] * s;
      }
    }
    store(run.y, row * run.y.stride + column, low_turned);
    store(run.y, row * run.y.stride + column + half, high_turned);
  }
};

}  // namespace

void rotary_table(const RotaryTableRun& run, cudaStream_t stream) {
  over_items(RotaryTable{run}, run.tokens, run.half, stream);
}

void rope(const RopeRun& run, cudaStream_t stream) {
  const int64_t pairs = run.walk.columns / 2;
  if (run.walk.vectors)
    over_items(Rope<kVectorElements>{run}, run.walk.rows, pairs / kVectorElements, stream);
  else
    over_items(Rope<1>{run}, run.walk.rows, pairs, stream);
}

}  // namespace snug::backends::cuda
