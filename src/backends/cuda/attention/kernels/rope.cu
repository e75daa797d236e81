#include "backends/cuda/attention/kernels/rope.h"

#include "backends/cuda/attention/kernels/rotation.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

struct RotaryTable {
  RotaryTableRun run;
  __device__ void operator()(int64_t token, int64_t i) const {
    // The angle is a double: as a float, an angle of 10^5 would lose five of its seven digits.
    const double angle = run.positions[token] * static_cast<double>(run.inverse_frequency[i]);
    const auto periods = static_cast<double>(run.positions[token] / run.period);
    const float factor = run.growth == 0.0F
                             ? run.factor
                             : static_cast<float>(run.factor * (1.0 + run.growth * log1p(periods)));
    float* row = run.table + token * 2 * run.half;
    row[i] = static_cast<float>(cos(angle)) * factor;
    row[run.half + i] = static_cast<float>(sin(angle)) * factor;
  }
};

// kCount pairs of elements.
template <int kCount>
struct Pairs {
  Elements<kCount> low;
  Elements<kCount> high;

  __device__ Pairs(const DeviceRows& x, int64_t row, const PairPlace& place)
      : low(load<kCount>(x, row * x.stride + place.column)),
        high(load<kCount>(x, row * x.stride + place.column + place.apart)) {}

  __device__ void rotate(const DeviceRows& table, int64_t offset, int64_t half, bool inverse) {
    const Elements<kCount> cosine = load<kCount>(table, offset);
    const Elements<kCount> sine = load<kCount>(table, offset + half);
    for (int k = 0; k < kCount; ++k) {
      rotate_pair(low.at[k], high.at[k], cosine.at[k], inverse ? -sine.at[k] : sine.at[k]);
    }
  }

  __device__ void put(const DeviceRows& y, int64_t row, const PairPlace& place) const {
    store(y, row * y.stride + place.column, low);
    store(y, row * y.stride + place.column + place.apart, high);
  }

  // Rounds to values that a tensor of this format can hold.
  __device__ void round(ElementFormat format) {
    for (int k = 0; k < kCount; ++k) {
      low.at[k] = as_held(format, low.at[k]);
      high.at[k] = as_held(format, high.at[k]);
    }
  }
};

template <int kCount>
struct Rope {
  RopeRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const PairPlace place(item, kCount, {run.head_dim, run.width, run.neighbours});
    Pairs<kCount> pairs(run.x, row, place);
    if (place.is_rotated && place.head < run.rotated_heads)
      pairs.rotate(run.table, row * run.table.stride + place.i, run.width / 2, run.inverse);
    pairs.put(run.y, row, place);
  }
};

template <int kCount>
struct Rotations {
  RotationsRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    int index = 0;
    for (; item >= run.parts[index].columns / 2 / kCount; ++index)
      item -= run.parts[index].columns / 2 / kCount;
    const RotationPart& part = run.parts[index];
    const PairPlace place(item, kCount, {part.head_dim, part.width, part.neighbours});
    Pairs<kCount> pairs(part.x, row, place);
    if (place.is_rotated && place.head < part.rotated_heads)
      pairs.rotate(run.table, row * run.table.stride + place.i, part.width / 2, false);
    if (part.y.data != nullptr) {
      pairs.put(part.y, row, place);
      pairs.round(part.y.format);
    }
    if (part.cache.data == nullptr) return;
    const int64_t slot = run.slots[row];
    if (slot < 0) return;
    device_check(slot < part.cache_rows);
    pairs.put(part.cache, slot, place);
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

void rotate_and_cache(const RotationsRun& run, cudaStream_t stream) {
  int64_t pairs = 0;
  for (int i = 0; i < run.count; ++i) pairs += run.parts[i].columns / 2;
  if (run.vectors)
    over_items(Rotations<kVectorElements>{run}, run.rows, pairs / kVectorElements, stream);
  else
    over_items(Rotations<1>{run}, run.rows, pairs, stream);
}

}  // namespace snug::backends::cuda
