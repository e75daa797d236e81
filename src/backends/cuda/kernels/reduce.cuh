// Sums and maxima over the threads of a warp or of a one-dimensional block, in a fixed order, and
// so with the same bits in every run. All threads take part and get the result.
#pragma once

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {

inline constexpr unsigned kWholeWarp = 0xffffffffU;

__device__ inline float warp_sum(float value) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
    value += __shfl_xor_sync(kWholeWarp, value, lanes);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, lanes));
  return value;
}

// Sums kCount values at once. The block must consist of whole warps.
template <int kCount>
__device__ void block_sums(float (&values)[kCount]) {
  __shared__ float partial[kCount][kLanes];
  for (int k = 0; k < kCount; ++k) values[k] = warp_sum(values[k]);
  __syncthreads();  // threads may still be reading for an earlier call
  if (threadIdx.x % kLanes == 0)
    for (int k = 0; k < kCount; ++k) partial[k][threadIdx.x / kLanes] = values[k];
  __syncthreads();
  for (int k = 0; k < kCount; ++k) {
    values[k] = 0.0F;
    for (unsigned warp = 0; warp < blockDim.x / kLanes; ++warp) values[k] += partial[k][warp];
  }
}

__device__ inline float block_sum(float value) {
  float values[1] = {value};
  block_sums(values);
  return values[0];
}

__device__ inline float block_max(float value) {
  __shared__ float partial[kLanes];
  value = warp_max(value);
  __syncthreads();
  if (threadIdx.x % kLanes == 0) partial[threadIdx.x / kLanes] = value;
  __syncthreads();
  for (unsigned warp = 0; warp < blockDim.x / kLanes; ++warp) value = fmaxf(value, partial[warp]);
  return value;
}

// The number of threads for a block that processes a row of `items` items: whole warps, at most
// `most` threads.
inline constexpr uint32_t kMaxRowThreads = 512;
constexpr uint32_t row_threads(int64_t items, uint32_t most = kMaxRowThreads) {
  const int64_t warps = ceil_div(items, kLanes);
  const auto threads = static_cast<uint32_t>(warps * kLanes < most ? warps * kLanes : most);
  return threads == 0 ? uint32_t{kLanes} : threads;
}

}  // namespace snug::backends::cuda
