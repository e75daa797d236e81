// A block sorts a piece of a row and keeps the k largest; another block sorts what these blocks
// kept. An element and its column form one key, so no two keys are equal and the order is unique.
#include "backends/cuda/expert/kernels/top_k.h"

#include "backends/cuda/device/device.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 512;
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

// The k largest of key(0) ... key(count - 1), the largest first, padded with 0. Sorts as many at a
// time as there is room for, together with those kept so far.
template <typename Key>
__device__ const uint64_t* take_largest(int64_t count, int64_t k, const Key& key) {
  auto* const keys = shared_memory<uint64_t>();
  auto kept = int64_t{0};
  int64_t next = 0;
  do {
    const int64_t left = count - next;
    const int64_t taken = left < kTopKElements - kept ? left : kTopKElements - kept;
    auto sorted = int32_t{2};
    while (sorted < kept + taken || sorted < k) sorted *= 2;
    for (int64_t i = kept + threadIdx.x; i < sorted; i += kThreads)
      keys[i] = i < kept + taken ? key(next + i - kept) : 0;
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
