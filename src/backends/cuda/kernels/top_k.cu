// A block keeps the k largest of a piece of a row; another one keeps the k largest of what those
// blocks kept and sorts them. Which they are is found bit by bit: the greatest number that k keys
// reach, from its highest bit on, until no more than k reach it.
// An element is one number with its column, so that no two are equal and an order that every block
// finds is the one order there is.
#include "backends/cuda/kernels/top_k.h"

#include "backends/cuda/device.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 512;
constexpr uint32_t kWarps = kThreads / kLanes;
constexpr int kThreadKeys = static_cast<int>(kTopKElements / kThreads);
constexpr int32_t kSortedBytes = kTopKElements * int32_t{sizeof(uint64_t)};

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

// Sorts so many keys, a power of two, largest first: a bitonic network (Batcher 1968).
__device__ void sort_keys(uint64_t* keys, int32_t count) {
  for (int32_t size = 2; size <= count; size *= 2)
    for (int32_t apart = size / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (auto i = static_cast<int32_t>(threadIdx.x); i < count / 2; i += int32_t{kThreads}) {
        const int32_t low = 2 * i - (i & (apart - 1));
        const uint64_t a = keys[low];
        const uint64_t b = keys[low + apart];
        const bool falls = (low & size) == 0;
        if (falls == (a >= b)) continue;
        keys[low] = b;
        keys[low + apart] = a;
      }
    }
  __syncthreads();
}

// Of all threads: how many of the block's keys are at least `least`. `counts`: of the warps, of two
// calls in turn.
__device__ uint32_t count_of(const uint64_t (&mine)[kThreadKeys], uint64_t least,
                             uint32_t (&counts)[kWarps]) {
  uint32_t count = 0;
#pragma unroll
  for (const uint64_t key : mine) count += key >= least ? 1 : 0;
  count = __reduce_add_sync(0xffffffffU, count);
  if (threadIdx.x % kLanes == 0) counts[threadIdx.x / kLanes] = count;
  __syncthreads();
  uint32_t all = 0;
#pragma unroll
  for (const uint32_t of_warp : counts) all += of_warp;
  return all;
}

// Moves the k largest of the keys to the front, in any order; where there are fewer, zeros follow.
__device__ void keep_keys(uint64_t* keys, int32_t count, int32_t k) {
  __shared__ uint32_t counts[2][kWarps];
  __syncthreads();
  uint64_t mine[kThreadKeys];
#pragma unroll
  for (int i = 0; i < kThreadKeys; ++i) {
    const auto at = static_cast<int32_t>(threadIdx.x) + i * int32_t{kThreads};
    mine[i] = at < count ? keys[at] : 0;
  }
  uint64_t least = 1;  // a key of 0 is none
  uint32_t reach = count_of(mine, least, counts[0]);
  for (int bit = 63; bit >= 0 && reach > static_cast<uint32_t>(k); --bit) {
    const uint64_t higher = (least == 1 ? 0 : least) | uint64_t{1} << bit;
    const uint32_t reach_it = count_of(mine, higher, counts[bit % 2]);
    if (reach_it < static_cast<uint32_t>(k)) continue;
    least = higher;
    reach = reach_it;
  }
  // Each warp's follow those of the warps before it.
  const uint32_t lower_lanes = (1U << threadIdx.x % kLanes) - 1U;
  uint32_t votes[kThreadKeys];
  uint32_t of_warp = 0;
#pragma unroll
  for (int i = 0; i < kThreadKeys; ++i) {
    votes[i] = __ballot_sync(0xffffffffU, mine[i] >= least);
    of_warp += static_cast<uint32_t>(__popc(votes[i]));
  }
  __syncthreads();
  if (threadIdx.x % kLanes == 0) counts[0][threadIdx.x / kLanes] = of_warp;
  __syncthreads();
  uint32_t place = 0;
  uint32_t all = 0;
  for (uint32_t warp = 0; warp < kWarps; ++warp) {
    if (warp < threadIdx.x / kLanes) place += counts[0][warp];
    all += counts[0][warp];
  }
#pragma unroll
  for (int i = 0; i < kThreadKeys; ++i) {
    if (mine[i] >= least)
      keys[place + static_cast<uint32_t>(__popc(votes[i] & lower_lanes))] = mine[i];
    place += static_cast<uint32_t>(__popc(votes[i]));
  }
  for (uint32_t i = all + threadIdx.x; i < static_cast<uint32_t>(k); i += kThreads) keys[i] = 0;
  __syncthreads();
}

// The k largest of key(0) ... key(count - 1), in any order; 0 where there are no more. As many as
// there is room for are looked at a time, with those kept so far.
template <typename Key>
__device__ uint64_t* take_largest(int64_t count, int64_t k, const Key& key) {
  auto* const keys = shared_memory<uint64_t>();
  auto kept = int64_t{0};
  int64_t next = 0;
  do {
    const int64_t left = count - next;
    const int64_t taken = left < kTopKElements - kept ? left : kTopKElements - kept;
    for (int64_t i = kept + threadIdx.x; i < kept + taken; i += kThreads)
      keys[i] = key(next + i - kept);
    keep_keys(keys, static_cast<int32_t>(kept + taken), static_cast<int32_t>(k));
    next += taken;
    kept = k;
  } while (next < count);
  return keys;
}

__global__ void __launch_bounds__(kThreads) keep_largest_kernel(TopKRun run) {
  let_next_kernel_begin();
  wait_for_kernels_before();
  const int64_t row = blockIdx.y;
  const int64_t begin = int64_t{blockIdx.x} * kTopKElements;
  const int64_t left = run.columns - begin;
  const float* x = run.x + row * run.columns + begin;
  const uint64_t* keys = take_largest(left < kTopKElements ? left : kTopKElements, run.k,
                                      [&](int64_t i) { return key_of(x[i], begin + i); });
  uint64_t* kept = run.kept + (row * gridDim.x + blockIdx.x) * run.k;
  for (int64_t i = threadIdx.x; i < run.k; i += kThreads) kept[i] = keys[i];
}

__global__ void __launch_bounds__(kThreads) merge_largest_kernel(TopKRun run) {
  let_next_kernel_begin();
  wait_for_kernels_before();
  const int64_t row = blockIdx.y;
  const int64_t count = top_k_blocks(run.columns) * run.k;
  const uint64_t* kept = run.kept + row * count;
  uint64_t* keys = take_largest(count, run.k, [&](int64_t i) { return kept[i]; });
  auto sorted = int32_t{2};
  while (sorted < run.k) sorted *= 2;
  for (int64_t i = run.k + threadIdx.x; i < sorted; i += kThreads) keys[i] = 0;
  sort_keys(keys, sorted);
  for (int64_t i = threadIdx.x; i < run.k; i += kThreads) {
    const uint64_t key = keys[i];
    const int32_t column = key == 0 ? -1 : column_of(key);
    run.ids[row * run.k + i] = column;
    run.values[row * run.k + i] = key == 0 ? -INFINITY : run.x[row * run.columns + column];
  }
}

}  // namespace

void top_k(const TopKRun& run, cudaStream_t stream) {
  if (run.rows == 0) return;
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.shared_bytes = kSortedBytes;
  shape.begins_early = true;
  shape.shares_most = true;
  shape.grid.x = static_cast<uint32_t>(top_k_blocks(run.columns));
  shape.grid.y = static_cast<uint32_t>(run.rows);
  launch(keep_largest_kernel, shape, stream, run);
  shape.grid.x = 1;
  launch(merge_largest_kernel, shape, stream, run);
}

}  // namespace snug::backends::cuda
