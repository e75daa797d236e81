#include "backends/cuda/kernels/noise.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

// The bits of an index, mixed: a multiplication spreads low bits upwards, a shift high ones down.
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

void fill_noise(const FillNoiseRun& run, cudaStream_t stream) {
  over_elements<FillNoise>(run, stream);
}

}  // namespace snug::backends::cuda
