// A thread computes two groups of values, which are one vector store where the address is aligned.
// Compiled without fused multiply-adds, as random_values.h requires.
#include "backends/cuda/kernels/random_values.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

constexpr int kGroup = static_cast<int>(kValueGroup);
static_assert(kVectorElements == 2 * kGroup);

struct MakeValues {
  RandomValuesRun run;

  __device__ void operator()(int64_t, int64_t item) const {
    const auto root = [](float x) { return __fsqrt_rn(x); };
    Elements<kVectorElements> elements;
    for (int half = 0; half < 2; ++half) {
      const ValueGroup four = value_group(run.values, run.first_group + 2 * item + half, root);
      for (int i = 0; i < kGroup; ++i)
        elements.at[half * kGroup + i] = four[static_cast<size_t>(i)];
    }
    const int64_t begin = item * kVectorElements;
    if (run.walk.vectors) return store(run.to, begin, elements);
    for (int i = 0; i < kVectorElements && begin + i < run.walk.columns; ++i)
      store_one(run.to, begin + i, elements.at[i]);
  }
};

// Mixes the bits of an index: a multiplication spreads low bits upwards, a shift high bits
// downwards.
__device__ float noise(int64_t index) {
  auto bits = static_cast<uint32_t>(index) * 0x9E3779B1U;
  bits ^= bits >> 15;
  bits *= 0x85EBCA77U;
  bits ^= bits >> 13;
  constexpr float kHalfRange = 2147483648.0F;
  return static_cast<float>(static_cast<int32_t>(bits)) / kHalfRange;
}

template <int kCount>
struct FillNoise {
  FillNoiseRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    Elements<kCount> values;
    for (int i = 0; i < kCount; ++i)
      values.at[i] = noise(row * run.walk.columns + item * kCount + i);
    store(run.y, row * run.y.stride + item * kCount, values);
  }
};

}  // namespace

void make_random_values(const RandomValuesRun& run, cudaStream_t stream) {
  over_items(MakeValues{run}, 1, ceil_div(run.walk.columns, kVectorElements), stream);
}

void fill_noise(const FillNoiseRun& run, cudaStream_t stream) {
  over_elements<FillNoise>(run, stream);
}

}  // namespace snug::backends::cuda
