#include "backends/cuda/elementwise/kernels/elementwise.h"

#include "backends/cuda/kernels/lane_elements.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

template <int kCount>
struct Add {
  AddRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> sum = load<kCount>(run.a, row * run.a.stride + column);
    const Elements<kCount> b = load<kCount>(run.b, row * run.b.stride + column);
    for (int i = 0; i < kCount; ++i) sum.at[i] += b.at[i];
    store(run.c, row * run.c.stride + column, sum);
  }
};

template <int kCount>
struct Cast {
  CastRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    store(run.y, row * run.y.stride + column, load<kCount>(run.x, row * run.x.stride + column));
  }
};

template <int kCount>
struct Scale {
  ScaleRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> value = load<kCount>(run.x, row * run.x.stride + column);
    for (int i = 0; i < kCount; ++i) value.at[i] *= run.factor;
    store(run.y, row * run.y.stride + column, value);
  }
};

template <int kCount>
struct FillZero {
  FillZeroRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    store(run.y, row * run.y.stride + item * kCount, Elements<kCount>{});
  }
};

template <int kCount>
struct AddBias {
  AddBiasRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t column = item * kCount;
    Elements<kCount> sum = load<kCount>(run.x, row * run.x.stride + column);
    const Elements<kCount> bias = load<kCount>(run.bias, column);
    for (int i = 0; i < kCount; ++i) sum.at[i] += bias.at[i];
    store(run.y, row * run.y.stride + column, sum);
  }
};

__device__ RandomSource source_of(const RandomKey& key) {
  return {key.seed, key.site, key.random[0], key.random[1]};
}

constexpr uint32_t kSumThreads = 256;
constexpr int64_t kSumWarps = kSumThreads / kLanes;

// A warp handles 256 elements in row-major order, a lane eight adjacent ones (lane_elements.cuh);
// where they are read as vectors, all are in one row.
__global__ void __launch_bounds__(kSumThreads) rounded_sum_kernel(RoundedSumRun run) {
  __shared__ RoundingBits traded[kSumWarps];
  const int64_t warp = threadIdx.x / kLanes;
  const int64_t block = int64_t{blockIdx.x} * kSumWarps + warp;
  const int64_t columns = run.walk.columns;
  const int64_t elements = run.walk.rows * columns;
  if (block * kOfWarp >= elements) return;
  const LanePlace place = place_of_lane(block, elements);
  // The offset in an operand of the lane's element i.
  const auto offset = [&](const DeviceRows& operand, int i) {
    const int64_t element = place.first + i;
    const int64_t row = run.walk.rows == 1 ? 0 : element / columns;
    return row * operand.stride + element - row * columns;
  };
  const bool vectors = run.walk.vectors && place.is_full();
  LaneElements x;
  LaneElements y;
  if (vectors) {
    x = load<kOfLane>(run.x, offset(run.x, 0));
    y = load<kOfLane>(run.y, offset(run.y, 0));
  } else {
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      x.at[i] = place.has(i) ? load_one(run.x, offset(run.x, i)) : 0.0F;
      y.at[i] = place.has(i) ? load_one(run.y, offset(run.y, i)) : 0.0F;
    }
  }
  const base::PhiloxKey key = stream_key(source_of(run.key), RandomPurpose::rounding);
  const LaneBits bits = trade_bits(key, 0, block, traded[warp]);
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) y.at[i] = rounded(y.at[i] + x.at[i], bits.of(i));
  if (vectors) {
    store<kOfLane>(run.y, offset(run.y, 0), y);
    return;
  }
#pragma unroll
  for (int i = 0; i < kOfLane; ++i)
    if (place.has(i)) store_one(run.y, offset(run.y, i), y.at[i]);
}

// One call of the generator decides for four columns that are 16 apart: a work item covers kCount
// calls.
template <int kCount>
struct Dropout {
  DropoutRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const RandomSource source = source_of(run.key);
    const base::PhiloxKey key = dropout_key(source);
    const auto row_in_step = static_cast<uint32_t>(source.first_row + row / run.row_length);
    const auto position = static_cast<uint32_t>(row % run.row_length);
    const int64_t call = item * kCount;
    base::PhiloxCounter words[kCount];
    for (int i = 0; i < kCount; ++i)
      words[i] = base::philox({static_cast<uint32_t>(call + i), position, row_in_step, 0}, key);
    const uint32_t threshold = dropout_threshold(run.probability);
    const float scale = dropout_scale(run.probability);
    const int64_t first = call / kRandomLanes * kDropoutBlock + call % kRandomLanes;
    for (int word = 0; word < kDropoutBlock / kRandomLanes; ++word) {
      const int64_t column = first + word * kRandomLanes;
      if (column >= run.walk.columns) return;
      Elements<kCount> x = load<kCount>(run.x, row * run.x.stride + column);
      for (int i = 0; i < kCount; ++i)
        x.at[i] = words[i][static_cast<size_t>(word)] >= threshold ? x.at[i] * scale : 0.0F;
      store(run.y, row * run.y.stride + column, x);
    }
  }
};

}  // namespace

void add(const AddRun& run, cudaStream_t stream) { over_elements<Add>(run, stream); }
void scale(const ScaleRun& run, cudaStream_t stream) { over_elements<Scale>(run, stream); }
void cast(const CastRun& run, cudaStream_t stream) { over_elements<Cast>(run, stream); }
void fill_zero(const FillZeroRun& run, cudaStream_t stream) {
  over_elements<FillZero>(run, stream);
}
void add_bias(const AddBiasRun& run, cudaStream_t stream) { over_elements<AddBias>(run, stream); }

void add_rounded(const RoundedSumRun& run, cudaStream_t stream) {
  const int64_t elements = run.walk.rows * run.walk.columns;
  if (elements == 0) return;
  LaunchShape shape;
  shape.grid.x = static_cast<uint32_t>(ceil_div(elements, kOfWarp * kSumWarps));
  shape.block.x = kSumThreads;
  launch(rounded_sum_kernel, shape, stream, run);
}

void dropout(const DropoutRun& run, cudaStream_t stream) {
  const int64_t calls = ceil_div(run.walk.columns, kDropoutBlock) * kRandomLanes;
  if (run.walk.vectors)
    over_items(Dropout<kVectorElements>{run}, run.walk.rows, calls / kVectorElements, stream);
  else
    over_items(Dropout<1>{run}, run.walk.rows, calls, stream);
}

}  // namespace snug::backends::cuda
