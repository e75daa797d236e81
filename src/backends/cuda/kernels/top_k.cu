// A block takes the k largest elements of a piece of a row; another one the k largest of what those
// blocks kept. An element is one number with its column, so that no two are equal and an order that
// every block finds is the one order there is. Each thread keeps the largest of its own that is not
// taken yet, and looks for the next one only when that was taken.
#include "backends/cuda/kernels/top_k.h"

#include "backends/cuda/device.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// Rises with the value, then falls with the column; 0 of NaN and minus infinity.
__device__ uint64_t key_of(float value, int64_t column) {
  if (!(value > -INFINITY)) return 0;
  const uint32_t bits = __float_as_uint(value == 0.0F ? 0.0F : value);
  const uint32_t rising = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return uint64_t{rising} << 32 | (0xffffffffU - static_cast<uint32_t>(column));
}

__device__ int32_t column_of(uint64_t key) {
  return static_cast<int32_t>(0xffffffffU - static_cast<uint32_t>(key));
}

// The largest key of all threads, which all get.
__device__ uint64_t block_largest(uint64_t key) {
  __shared__ uint64_t partial[kThreads / kLanes];
  const auto larger = [](uint64_t a, uint64_t b) { return a > b ? a : b; };
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2)
    key = larger(key, __shfl_xor_sync(kWholeWarp, key, lanes));
  __syncthreads();  // an earlier call may still be reading
  if (threadIdx.x % kLanes == 0) partial[threadIdx.x / kLanes] = key;
  __syncthreads();
  for (const uint64_t of_warp : partial) key = larger(key, of_warp);
  return key;
}

// give(i, key) of the k largest of key(0) ... key(count - 1), largest first, by the first thread;
// 0 where there are no more.
template <typename Key, typename Give>
__device__ void take_largest(int64_t count, int64_t k, const Key& key, const Give& give) {
  const auto own_below = [&](uint64_t bound) {
    uint64_t most = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
      const uint64_t next = key(i);
      if (next < bound && next > most) most = next;
    }
    return most;
  };
  uint64_t own = own_below(~uint64_t{0});
  for (int64_t i = 0; i < k; ++i) {
    const uint64_t largest = block_largest(own);
    if (threadIdx.x == 0) give(i, largest);
    if (largest != 0 && own == largest) own = own_below(largest);
  }
}

__global__ void __launch_bounds__(kThreads) keep_largest_kernel(TopKRun run) {
  wait_for_kernels_before();
  const int64_t row = blockIdx.y;
  const int64_t begin = int64_t{blockIdx.x} * kTopKElements;
  const int64_t left = run.columns - begin;
  const float* x = run.x + row * run.columns + begin;
  uint64_t* kept = run.kept + (row * gridDim.x + blockIdx.x) * run.k;
  take_largest(
      left < kTopKElements ? left : kTopKElements, run.k,
      [&](int64_t i) { return key_of(x[i], begin + i); },
      [&](int64_t i, uint64_t key) { kept[i] = key; });
}

__global__ void __launch_bounds__(kThreads) merge_largest_kernel(TopKRun run) {
  wait_for_kernels_before();
  const int64_t row = blockIdx.y;
  const int64_t count = top_k_blocks(run.columns) * run.k;
  const uint64_t* kept = run.kept + row * count;
  take_largest(
      count, run.k, [&](int64_t i) { return kept[i]; },
      [&](int64_t i, uint64_t key) {
        const int32_t column = key == 0 ? -1 : column_of(key);
        run.ids[row * run.k + i] = column;
        run.values[row * run.k + i] = key == 0 ? -INFINITY : run.x[row * run.columns + column];
      });
}

}  // namespace

void top_k(const TopKRun& run, cudaStream_t stream) {
  if (run.rows == 0) return;
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.begins_early = true;
  shape.grid.x = static_cast<uint32_t>(top_k_blocks(run.columns));
  shape.grid.y = static_cast<uint32_t>(run.rows);
  launch(keep_largest_kernel, shape, stream, run);
  shape.grid.x = 1;
  launch(merge_largest_kernel, shape, stream, run);
}

}  // namespace snug::backends::cuda
