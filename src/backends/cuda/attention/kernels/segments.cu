#include "backends/cuda/attention/kernels/segments.h"

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kThreads = 128;

// The bucket's segments, in the order of the row, then unused entries, which begin where the last
// of them ended, since cuDNN needs ascending positions.
__global__ void segment_tables(SegmentTablesRun run) {
  for (int64_t entry = threadIdx.x; entry <= run.entries; entry += blockDim.x) {
    int64_t first = entry == run.entries ? run.tokens : 0;
    int32_t length = 0;
    int64_t before = 0;
    for (int64_t s = 0; s < run.segments && entry < run.entries && length == 0; ++s) {
      const int32_t begin = run.bounds[2 * s];
      const int32_t tokens = run.bounds[2 * s + 1] - begin;
      device_check(tokens <= run.max_tokens);
      if (tokens <= run.above || tokens > run.longest) continue;
      const bool is_this = before++ == entry;
      if (is_this) length = tokens;
      first = is_this ? begin : begin + tokens;
    }
    if (entry < run.entries) run.lengths[entry] = length;
    for (int32_t t = 0; t < run.tables; ++t)
      run.begins[t * segment_table_entries(run.entries) + entry] = first * run.strides[t];
  }
}

struct TurnLse {
  LseRun run;
  __device__ void operator()(int64_t token, int64_t head) const {
    const int64_t by_token = token * run.heads + head;
    const int64_t by_head = head * run.tokens + token;
    run.to[run.to_heads ? by_head : by_token] = run.from[run.to_heads ? by_token : by_head];
  }
};

// One block per token.
__global__ void outside(OutsideRun run) {
  for (int64_t token = blockIdx.x; token < run.tokens; token += gridDim.x) {
    bool is_inside = false;
    for (int64_t s = 0; s < run.segments && !is_inside; ++s)
      is_inside = run.bounds[2 * s] <= token && token < run.bounds[2 * s + 1];
    if (is_inside) continue;
    for (int i = 0; i < 3; ++i)
      for (int64_t c = threadIdx.x; run.rows[i].data != nullptr && c < run.columns[i];
           c += blockDim.x)
        store_one(run.rows[i], token * run.rows[i].stride + c, 0.0F);
    for (int64_t head = threadIdx.x; run.lse != nullptr && head < run.heads; head += blockDim.x)
      run.lse[head * run.tokens + token] = 0.0F;
  }
}

}  // namespace

void write_segment_tables(const SegmentTablesRun& run, cudaStream_t stream) {
  launch(segment_tables, {.grid = {}, .block = {kThreads}}, stream, run);
}

void turn_lse(const LseRun& run, cudaStream_t stream) {
  over_items(TurnLse{run}, run.tokens, run.heads, stream);
}

void clear_outside(const OutsideRun& run, cudaStream_t stream) {
  if (run.tokens == 0) return;
  constexpr int64_t kMaxBlocks = 65535;
  const auto blocks = static_cast<uint32_t>(run.tokens < kMaxBlocks ? run.tokens : kMaxBlocks);
  launch(outside, {.grid = {blocks}, .block = {kThreads}}, stream, run);
}

}  // namespace snug::backends::cuda
