// A block keeps the k largest of a piece of a row; another block those of what these blocks kept.
// Each sorts what reaches the k-th largest of its threads' largest elements: the others cannot be
// among the k. An element and its column form one key, so no two keys are equal and the order is
// unique.
#include "backends/cuda/expert/kernels/top_k.h"

#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 512;
constexpr int kOfThread = kTopKElements / int64_t{kThreads};
constexpr int32_t kSortedBytes = kTopKElements * int32_t{sizeof(uint64_t)};

// Increases with the value, then decreases with the column; 0 for NaN and minus infinity.
__device__ uint64_t key_of(float value, int64_t column) {
  if (!(value > -INFINITY)) return 0;
  const uint32_t bits = __float_as_uint(value == 0.0F ? 0.0F : value);
  const uint32_t rising = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  return uint64_t{rising} << 32 | (0xffffffffU - static_cast<uint32_t>(column));
}

__device__ int32_t column_of(uint64_t key) {
  return static_cast<int32_t>(0xffffffffU - static_cast<uint32_t>(key));
}

// Sorts `count` keys, a power of two, the largest first, by a bitonic network (Batcher 1968).
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

// A key that at least k of the threads' keys reach: the k-th largest of each thread's largest.
// 0, which all keys reach, where there are fewer threads.
__device__ uint64_t bound_of(const uint64_t (&mine)[kOfThread], int64_t k) {
  __shared__ uint64_t maxima[kThreads];
  if (k > int64_t{kThreads}) return 0;
  uint64_t most = 0;
  for (const uint64_t key : mine) most = key > most ? key : most;
  maxima[threadIdx.x] = most;
  sort_keys(maxima, int32_t{kThreads});
  return maxima[k - 1];
}

// Writes the threads' keys that are at least `bound` one after the other, and returns how many
// there are. Those of 0 are left out.
__device__ int32_t gather_keys(const uint64_t (&mine)[kOfThread], uint64_t bound, uint64_t* keys) {
  constexpr uint32_t kWarpsOfBlock = kThreads / kLanes;
  __shared__ int32_t counts[kWarpsOfBlock];
  const uint32_t warp = threadIdx.x / kLanes;
  const uint32_t before = (1U << threadIdx.x % kLanes) - 1;  // lanes
  int32_t count = 0;
  uint32_t votes[kOfThread];
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
    votes[i] = __ballot_sync(kWholeWarp, mine[i] != 0 && mine[i] >= bound);
    count += __popc(votes[i]);
  }
  if (threadIdx.x % kLanes == 0) counts[warp] = count;
  __syncthreads();
  int32_t place = 0;
  int32_t all = 0;
  for (uint32_t i = 0; i < kWarpsOfBlock; ++i) {
    if (i < warp) place += counts[i];
    all += counts[i];
  }
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
    if ((votes[i] >> threadIdx.x % kLanes & 1U) != 0)
      keys[place + __popc(votes[i] & before)] = mine[i];
    place += __popc(votes[i]);
  }
  return all;
}

// The k largest of key(0) ... key(count - 1), the largest first, padded with 0. Takes as many at a
// time as there is room for, together with those kept so far, and sorts those that may be among the
// largest: few, unless the threads' largest keys are close to each other.
template <typename Key>
__device__ const uint64_t* take_largest(int64_t count, int64_t k, const Key& key) {
  auto* const keys = shared_memory<uint64_t>();
  auto kept = int64_t{0};
  int64_t next = 0;
  do {
    const int64_t left = count - next;
    const int64_t taken = left < kTopKElements - kept ? left : kTopKElements - kept;
    uint64_t mine[kOfThread];
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      const int64_t i = int64_t{threadIdx.x} + j * int64_t{kThreads};
      mine[j] = i < kept ? keys[i] : i < kept + taken ? key(next + i - kept) : 0;
    }
    const uint64_t bound = kept + taken > int64_t{kThreads} ? bound_of(mine, k) : 0;
    const int32_t gathered = gather_keys(mine, bound, keys);
    auto sorted = int32_t{2};
    while (sorted < gathered || sorted < k) sorted *= 2;
    for (int64_t i = gathered + threadIdx.x; i < sorted; i += kThreads) keys[i] = 0;
    sort_keys(keys, sorted);
    next += taken;
    kept = k;
  } while (next < count);
  return keys;
}

__global__ void __launch_bounds__(kThreads) keep_largest_kernel(TopKRun run) {
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
  wait_for_kernels_before();
  const int64_t row = blockIdx.y;
  const int64_t count = top_k_blocks(run.columns) * run.k;
  const uint64_t* kept = run.kept + row * count;
  const uint64_t* keys = take_largest(count, run.k, [&](int64_t i) { return kept[i]; });
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
  shape.grid.x = static_cast<uint32_t>(top_k_blocks(run.columns));
  shape.grid.y = static_cast<uint32_t>(run.rows);
  launch(keep_largest_kernel, shape, stream, run);
  shape.grid.x = 1;
  launch(merge_largest_kernel, shape, stream, run);
}

}  // namespace snug::backends::cuda
