// The gradient needs neither a sort nor atomics. One block per token checks whether the token's id
// occurred before; if so it ends. Otherwise it owns that row of the table: it lists the tokens with
// its id, batch by batch in order, and adds their rows.
#include "backends/cuda/product/kernels/embedding.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr int kWarps = kThreads / kLanes;

template <int kCount>
struct Gather {
  GatherRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t id = run.ids[row];
    device_check(id >= 0 && id < run.known_ids);
    const int64_t column = item * kCount;
    store(run.y, row * run.y.stride + column,
          load<kCount>(run.table, id * run.table.stride + column));
  }
};

// Gathers from a transposed table, where the elements of a column are not contiguous.
template <int kCount>
struct GatherColumn {
  GatherRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t id = run.ids[row];
    device_check(id >= 0 && id < run.known_ids);
    const int64_t column = item * kCount;
    Elements<kCount> values;
    for (int k = 0; k < kCount; ++k)
      values.at[k] = load_one(run.table, (column + k) * run.table.stride + id);
    store(run.y, row * run.y.stride + column, values);
  }
};

template <int kCount>
struct CacheWrite {
  CacheWriteRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t slot = run.slots[row];
    if (slot < 0) return;
    device_check(slot < run.cache_rows);
    const int64_t column = item * kCount;
    store(run.cache, slot * run.cache.stride + column,
          load<kCount>(run.x, row * run.x.stride + column));
  }
};

// Whether the condition holds for any thread of the block.
__device__ bool block_any(bool condition) { return block_max(condition ? 1.0F : 0.0F) > 0.0F; }

// Whether ids[t] occurs among ids[0, t).
__device__ bool stood_before(const int32_t* ids, int64_t t) {
  bool found = false;
  for (int64_t i = threadIdx.x; i < t && !found; i += kThreads) found = ids[i] == ids[t];
  return block_any(found);
}

// Lists the tokens of [begin, begin + kThreads) with this id, ascending; returns their number.
__device__ int list_tokens(const EmbeddingGradRun& run, int32_t id, int64_t begin,
                           int32_t (&tokens)[kThreads]) {
  __shared__ int counts[kWarps];
  const int64_t t = begin + threadIdx.x;
  const bool match = t < run.walk.rows && run.ids[t] == id;
  const unsigned votes = __ballot_sync(kWholeWarp, match);
  const unsigned warp = threadIdx.x / kLanes;
  const unsigned lane = threadIdx.x % kLanes;
  if (lane == 0) counts[warp] = __popc(votes);
  __syncthreads();
  int before = 0;
  int all = 0;
  for (unsigned i = 0; i < kWarps; ++i) {
    before += i < warp ? counts[i] : 0;
    all += counts[i];
  }
  if (match) tokens[before + __popc(votes & ((1U << lane) - 1U))] = static_cast<int32_t>(t);
  __syncthreads();
  return all;
}

// blockIdx.y selects kThreads * kCount columns.
template <int kCount>
__global__ void embedding_grad_kernel(EmbeddingGradRun run) {
  __shared__ int32_t tokens[kThreads];
  const int64_t first = blockIdx.x;
  const int32_t id = run.ids[first];
  device_check(id >= 0 && id < run.known_ids);
  if (stood_before(run.ids, first)) return;
  const int64_t column = (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kCount;
  const bool has_column = column < run.walk.columns;
  Elements<kCount> sum{};
  for (int64_t begin = first; begin < run.walk.rows; begin += kThreads) {
    const int count = list_tokens(run, id, begin, tokens);
    for (int i = 0; i < count && has_column; ++i) {
      const Elements<kCount> dy = load<kCount>(run.dy, tokens[i] * run.dy.stride + column);
      for (int k = 0; k < kCount; ++k) sum.at[k] += dy.at[k];
    }
  }
  if (!has_column) return;
  if (run.transposed) {
    for (int k = 0; k < kCount; ++k) {
      const int64_t at = (column + k) * run.dtable.stride + id;
      store_one(run.dtable, at, load_one(run.dtable, at) + sum.at[k]);
    }
    return;
  }
  const int64_t at = id * run.dtable.stride + column;
  const Elements<kCount> old = load<kCount>(run.dtable, at);
  for (int k = 0; k < kCount; ++k) sum.at[k] += old.at[k];
  store(run.dtable, at, sum);
}

}  // namespace

void gather_rows(const GatherRun& run, cudaStream_t stream) { over_elements<Gather>(run, stream); }

void gather_columns(const GatherRun& run, cudaStream_t stream) {
  over_elements<GatherColumn>(run, stream);
}

void cache_write(const CacheWriteRun& run, cudaStream_t stream) {
  over_elements<CacheWrite>(run, stream);
}

void add_embedding_grad(const EmbeddingGradRun& run, cudaStream_t stream) {
  if (run.walk.rows == 0 || run.walk.columns == 0) return;
  const int64_t elements = run.walk.vectors ? kVectorElements : 1;
  LaunchShape shape;
  shape.block.x = kThreads;
  shape.grid.x = static_cast<uint32_t>(run.walk.rows);
  shape.grid.y = static_cast<uint32_t>(ceil_div(run.walk.columns, kThreads * elements));
  launch(run.walk.vectors ? embedding_grad_kernel<kVectorElements> : embedding_grad_kernel<1>,
         shape, stream, run);
}

}  // namespace snug::backends::cuda
