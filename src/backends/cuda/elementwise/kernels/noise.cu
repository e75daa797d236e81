#include "backends/cuda/elementwise/kernels/noise.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/formulas/embedding_noise.h"

namespace snug::backends::cuda {
namespace {

// One call of the generator makes the noise of four columns that are 16 apart: a work item covers
// kCount calls.
template <int kCount>
struct AddNoise {
  AddNoiseRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const RandomSource source{run.key.seed, run.key.site, run.key.random[0], run.key.random[1]};
    const base::PhiloxKey key = noise_key(source);
    const auto row_in_step = static_cast<uint32_t>(source.first_row + row / run.row_length);
    const auto position = static_cast<uint32_t>(row % run.row_length);
    const int64_t length = segment_length_at(run.bounds, run.segments, row);
    const float scale = noise_scale(run.alpha, length, run.walk.columns);
    const int64_t call = item * kCount;
    base::PhiloxCounter words[kCount];
    for (int i = 0; i < kCount; ++i)
      words[i] = base::philox({static_cast<uint32_t>(call + i), position, row_in_step, 0}, key);
    const int64_t first = call / kRandomLanes * kDropoutBlock + call % kRandomLanes;
    for (int word = 0; word < kDropoutBlock / kRandomLanes; ++word) {
      const int64_t column = first + word * kRandomLanes;
      if (column >= run.walk.columns) return;
      Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
      for (int i = 0; i < kCount; ++i)
        x.at[i] += scale * noise_unit(words[i][static_cast<size_t>(word)]);
      store(run.y, row * run.y.stride + column, x);
    }
  }
};

}  // namespace

void add_noise(const AddNoiseRun& run, cudaStream_t stream) {
  const int64_t calls = ceil_div(run.walk.columns, kDropoutBlock) * kRandomLanes;
  if (run.walk.vectors)
    over_items(AddNoise<kVectorElements>{run}, run.walk.rows, calls / kVectorElements, stream);
  else
    over_items(AddNoise<1>{run}, run.walk.rows, calls, stream);
}

}  // namespace snug::backends::cuda
