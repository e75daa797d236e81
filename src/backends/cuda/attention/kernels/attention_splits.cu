// A block handles one query, the heads of a group that share a key head, and a part of the keys:
// every splits-th piece of keys_in_one_go keys. lanes_of_key lanes read a key, 16 bytes each, and
// each lane reads kSplitKeys keys at once. Lanes with the same columns keep separate running sums
// (relative to the maximum so far, and rescaled when it grows); at the end they are merged within
// the warp, then over the block. The last block of a query and its heads then merges what all of
// them wrote to scratch.
#include "backends/cuda/attention/kernels/attention_splits.h"

#include "backends/cuda/attention/kernels/attention_ranges.cuh"
#include "backends/cuda/attention/kernels/key_columns.cuh"
#include "backends/cuda/attention/kernels/key_fetch.cuh"
#include "backends/cuda/attention/kernels/score_adjustment.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/last_block.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kSplitThreads = kSplitWarps * kLanes;

// The weight of a value relative to a maximum; 0 for a value of -infinity. NaN stays NaN.
__device__ float beneath(float maximum, float value) {
  return value == -INFINITY ? 0.0F : expf(value - maximum);
}

// This block's part of the work.
struct SplitPlace {
  int64_t query;
  int64_t split;
  int64_t kv_head;
  int64_t head;  // the first head
  int heads;

  __device__ SplitPlace(const AttentionSplitsRun& run, int most_heads) {
    const AttentionForm& form = run.segments.shape.form;
    const int group = form.heads / form.kv_heads;
    const auto parts = static_cast<int>(ceil_div(group, most_heads));
    const int part = static_cast<int>(blockIdx.y) % parts;
    query = blockIdx.x / run.splits;
    split = blockIdx.x % run.splits;
    kv_head = blockIdx.y / parts;
    head = kv_head * group + part * most_heads;
    heads = group - part * most_heads < most_heads ? group - part * most_heads : most_heads;
  }
};

// The columns and keys that this lane reads.
struct SplitLane {
  int lanes;   // lanes that share a key
  int slot;    // position among the keys that the block reads at once
  int slots;   // the distance, in keys, from one of the lane's keys to its next
  int column;  // the first of its kVectorElements columns

  __device__ explicit SplitLane(int head_dim) {
    lanes = lanes_of_key(head_dim);
    const auto thread = static_cast<int>(threadIdx.x);
    slot = thread / lanes;
    slots = static_cast<int>(kSplitThreads) / lanes;
    column = thread % lanes * kVectorElements;
  }
};

// The scales of the lane's keys of a head; ones where keys have none.
template <typename Format>
__device__ void read_scales(const KeyScales& scales, int64_t head,
                            const int64_t (&rows)[kSplitKeys], float (&to)[kSplitKeys]) {
  for (int k = 0; k < kSplitKeys; ++k) {
    if constexpr (kHasScales<Format>)
      to[k] = rows[k] >= 0 ? scales.of_head(head)[rows[k]] : 0.0F;
    else
      to[k] = 1.0F;
  }
}

// Values with what their weights are multiplied by.
template <typename Format>
struct SplitValues {
  KeyColumns<Format> at[kSplitKeys];
  float scales[kSplitKeys];
};

// One lane's part of the sums of kHeads heads.
template <int kHeads>
struct HeadSums {
  float peak[kHeads];
  float total[kHeads];
  float output[kHeads][kVectorElements];

  __device__ HeadSums() {
    for (int h = 0; h < kHeads; ++h) {
      peak[h] = -INFINITY;
      total[h] = 0.0F;
      for (int i = 0; i < kVectorElements; ++i) output[h][i] = 0.0F;
    }
  }

  // Adds keys with these scores; -INFINITY means that a key is not seen.
  template <typename Format>
  __device__ void add(int h, const float (&scores)[kSplitKeys], const SplitValues<Format>& values) {
    float now = peak[h];
    for (const float score : scores) now = fmaxf(now, score);
    const float factor = beneath(now, peak[h]);
    peak[h] = now;
    total[h] *= factor;
    for (int i = 0; i < kVectorElements; ++i) output[h][i] *= factor;
    for (int k = 0; k < kSplitKeys; ++k) {
      const float weight = beneath(now, scores[k]);
      total[h] += weight;
      const float share = kHasScales<Format> ? weight * values.scales[k] : weight;
      for (int i = 0; i < kVectorElements; ++i) output[h][i] += share * values.at[k].at(i);
    }
  }

  // Merges the sums of the warp's lanes that have the same columns of different keys.
  __device__ void merge_warp(int lanes) {
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      float now = peak[h];
      for (int apart = lanes; apart < kLanes; apart *= 2)
        now = fmaxf(now, __shfl_xor_sync(kWholeWarp, now, apart));
      const float factor = beneath(now, peak[h]);
      peak[h] = now;
      total[h] *= factor;
      for (int i = 0; i < kVectorElements; ++i) output[h][i] *= factor;
      for (int apart = lanes; apart < kLanes; apart *= 2) {
        total[h] += __shfl_xor_sync(kWholeWarp, total[h], apart);
        for (int i = 0; i < kVectorElements; ++i)
          output[h][i] += __shfl_xor_sync(kWholeWarp, output[h][i], apart);
      }
    }
  }
};

// Reads this lane's columns of the query for each head, multiplied by the scale unless scores are
// adjusted.
template <int kHeads, bool kAdjusts>
__device__ void read_query(const AttentionSplitsRun& run, const SplitPlace& place,
                           const SplitLane& lane, float (&query)[kHeads][kVectorElements]) {
  const AttentionForm& form = run.segments.shape.form;
  const float scale = kAdjusts ? 1.0F : form.scale;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int64_t offset =
        place.query * run.q.stride + (place.head + h) * form.head_dim + lane.column;
    for (int i = 0; i < kVectorElements; ++i)
      query[h][i] = h < place.heads && lane.column + i < form.head_dim
                        ? load_one(run.q, offset + i) * scale
                        : 0.0F;
  }
}

// Reads the lane's keys in these rows; those without a row become zero, whatever is in memory.
template <typename Format>
__device__ void read_keys(const DeviceRows& x, const int64_t (&rows)[kSplitKeys], int64_t column,
                          int count, KeyColumns<Format> (&pieces)[kSplitKeys]) {
  for (int k = 0; k < kSplitKeys; ++k) {
    pieces[k].clear();
    if (rows[k] >= 0 && count > 0) pieces[k].read(x, rows[k] * x.stride + column, count);
  }
}

// Shared memory for each of the block's warps and heads: the output, then its peak and total.
struct SharedRows {
  float* rows;  // (kSplitWarps, heads, row_floats)
  int heads;
  int row_floats;

  __device__ float* row(int warp, int head) const {
    return rows + (warp * heads + head) * row_floats;
  }
  __device__ float& peak(int warp, int head) const { return row(warp, head)[row_floats - 2]; }
  __device__ float& total(int warp, int head) const { return row(warp, head)[row_floats - 1]; }
};

template <int kHeads>
__device__ void share_sums(const SharedRows& shared, const SplitLane& lane,
                           const HeadSums<kHeads>& sums) {
  if (static_cast<int>(threadIdx.x % kLanes) >= lane.lanes) return;
  const auto warp = static_cast<int>(threadIdx.x / kLanes);
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    float* row = shared.row(warp, h);
    for (int i = 0; i < kVectorElements; ++i) row[lane.column + i] = sums.output[h][i];
    shared.peak(warp, h) = sums.peak[h];
    shared.total(warp, h) = sums.total[h];
  }
}

// Merges the warps' sums in order, and writes the block's sums to scratch.
__device__ void store_block(const AttentionSplitsRun& run, const SplitPlace& place,
                            const SharedRows& shared) {
  const AttentionForm& form = run.segments.shape.form;
  for (int item = static_cast<int>(threadIdx.x); item < place.heads * form.head_dim;
       item += kSplitThreads) {
    const int h = item / form.head_dim;
    const int column = item % form.head_dim;
    float peak = -INFINITY;
    for (int warp = 0; warp < kSplitWarps; ++warp) peak = fmaxf(peak, shared.peak(warp, h));
    float total = 0.0F;
    float output = 0.0F;
    for (int warp = 0; warp < kSplitWarps; ++warp) {
      const float factor = beneath(peak, shared.peak(warp, h));
      total += factor * shared.total(warp, h);
      output += factor * shared.row(warp, h)[column];
    }
    const int64_t part = (place.query * form.heads + place.head + h) * run.splits + place.split;
    run.outputs[part * form.head_dim + column] = output;
    if (column > 0) continue;
    run.peaks[part] = peak;
    run.totals[part] = total;
  }
}

// Whether any split of a query's head has seen a key.
__device__ bool sees_some(const AttentionSplitsRun& run, int64_t first) {
  for (int64_t part = first; part < first + run.splits; ++part)
    if (run.totals[part] != 0.0F) return true;
  return false;
}

// Adds up the splits for one column of a query's head, and its sink.
__device__ void combine_column(const AttentionSplitsRun& run, int64_t query, int64_t head,
                               int64_t column) {
  const AttentionShape& shape = run.segments.shape;
  const int64_t first = (query * shape.form.heads + head) * run.splits;
  const bool has_sink = run.sinks.data != nullptr;
  const float sink = has_sink ? load_one(run.sinks, head) : -INFINITY;
  float peak = sink;
  for (int64_t part = first; part < first + run.splits; ++part) peak = fmaxf(peak, run.peaks[part]);
  float total = 0.0F;
  float output = 0.0F;
  for (int64_t part = first; part < first + run.splits; ++part) {
    const float factor = beneath(peak, run.peaks[part]);
    total += factor * run.totals[part];
    output += factor * run.outputs[part * shape.form.head_dim + column];
  }
  // If the sink is far above all scores, their weights may round to zero.
  const bool seen = total != 0.0F || (has_sink && sees_some(run, first));
  total += beneath(peak, sink);
  store_one(run.o, query * run.o.stride + head * shape.form.head_dim + column,
            seen ? output / total : 0.0F);
  if (column == 0) run.lse[head * shape.q_tokens + query] = seen ? peak + logf(total) : 0.0F;
}

// Adds up the splits of the block's query and heads.
__device__ void combine_splits(const AttentionSplitsRun& run, const SplitPlace& place) {
  const int head_dim = run.segments.shape.form.head_dim;
  for (int item = static_cast<int>(threadIdx.x); item < place.heads * head_dim;
       item += kSplitThreads)
    combine_column(run, place.query, place.head + item / head_dim, item % head_dim);
}

template <int kHeads, typename Format, bool kAdjusts, bool kBiased>
__device__ void attend(const AttentionSplitsRun& run) {
  const AttentionForm& form = run.segments.shape.form;
  const SplitPlace place(run, kHeads);
  const SplitLane lane(form.head_dim);
  const TokenRange keys = keys_of(run.segments, place.query);
  const KeyRows key_rows(run.segments, keys.begin);
  const int64_t diagonal = kBiased ? diagonal_of(run.segments, place.query) : int64_t{keys.end} - 1;
  const int64_t column = place.kv_head * form.head_dim + lane.column;
  const int count = form.head_dim - lane.column;  // columns of the head from the lane's first on
  float query[kHeads][kVectorElements];
  read_query<kHeads, kAdjusts>(run, place, lane, query);
  HeadSums<kHeads> sums;
  const int64_t step = int64_t{lane.slots} * kSplitKeys;
  for (int64_t first = keys.begin + place.split * step; first < keys.end;
       first += run.splits * step) {
    KeyColumns<Format> key[kSplitKeys];
    float key_scales[kSplitKeys];
    SplitValues<Format> values;
    int64_t rows[kSplitKeys];
    for (int k = 0; k < kSplitKeys; ++k) {
      const int64_t this_key = first + lane.slot + k * lane.slots;
      rows[k] = this_key < keys.end ? key_rows.row(this_key) : -1;
    }
    read_keys(run.k, rows, column, count, key);
    read_keys(run.v, rows, column, count, values.at);
    read_scales<Format>(run.k_scales, place.kv_head, rows, key_scales);
    read_scales<Format>(run.v_scales, place.kv_head, rows, values.scales);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      // A head beyond the last one has no bias, and its sums are not used.
      const int64_t head = !kBiased || h < place.heads ? place.head + h : place.head;
      const ScoreAdjustment<kBiased> adjustment(form, head, 1.0F);
      float scores[kSplitKeys];
      for (int k = 0; k < kSplitKeys; ++k) {
        float product = 0.0F;
        for (int i = 0; i < kVectorElements; ++i) product += query[h][i] * key[k].at(i);
        for (int apart = lane.lanes / 2; apart > 0; apart /= 2)
          product += __shfl_xor_sync(kWholeWarp, product, apart);
        if constexpr (kHasScales<Format>) product *= key_scales[k];
        const int64_t this_key = first + lane.slot + k * lane.slots;
        if constexpr (kAdjusts) product = adjustment.at(product, this_key - diagonal).score;
        scores[k] = this_key < keys.end ? product : -INFINITY;
      }
      sums.add(h, scores, values);
    }
  }
  sums.merge_warp(lane.lanes);
  const SharedRows shared{shared_memory<float>(), kHeads, split_row_floats(form.head_dim)};
  share_sums<kHeads>(shared, lane, sums);
  __syncthreads();
  store_block(run, place, shared);
  if (run.splits == 1)
    __syncthreads();
  else if (!is_last_block(run.finished + place.query * gridDim.y + blockIdx.y,
                          static_cast<uint32_t>(run.splits)))
    return;
  combine_splits(run, place);
}

// So many of a lane's reads are asked for early: of a block with heads of 128 they are 64 KiB, of
// all blocks less than the L2 cache has.
constexpr int kEarlyReads = 4;

// Asks for the block's first keys and values to be in the L2 cache when it has waited. The products
// ahead, which it would wait for, leave the memory idle while they end. Rows that they still write
// are read after the wait all the same.
template <int kHeads>
__device__ void fetch_early(const AttentionSplitsRun& run) {
  constexpr int kSectorElements = 16;  // the cache is filled 32 bytes at a time
  const AttentionForm& form = run.segments.shape.form;
  const SplitPlace place(run, kHeads);
  const SplitLane lane(form.head_dim);
  if (lane.column >= form.head_dim || lane.column % kSectorElements != 0) return;
  const TokenRange keys = keys_of(run.segments, place.query);
  const KeyRows key_rows(run.segments, keys.begin);
  const int64_t column = place.kv_head * form.head_dim + lane.column;
  const int64_t step = int64_t{lane.slots} * kSplitKeys;
  for (int read = 0; read < kEarlyReads; ++read) {
    const int64_t first = keys.begin + (place.split + read * run.splits) * step + lane.slot;
    for (int k = 0; k < kSplitKeys; ++k) {
      const int64_t this_key = first + k * lane.slots;
      if (this_key >= keys.end) return;
      const int64_t row = key_rows.row(this_key);
      fetch_to_cache(static_cast<const uint16_t*>(run.k.data) + row * run.k.stride + column);
      fetch_to_cache(static_cast<const uint16_t*>(run.v.data) + row * run.v.stride + column);
    }
  }
}

template <int kHeads, typename Format, bool kAdjusts>
__global__ void __launch_bounds__(kSplitThreads) attention_splits_kernel(AttentionSplitsRun run) {
  let_next_kernel_begin();
  if (run.fetches_early) fetch_early<kHeads>(run);
  wait_for_kernels_before();
  attend<kHeads, Format, kAdjusts, false>(run);
}
template <int kHeads, typename Format>
__global__ void __launch_bounds__(kSplitThreads) attention_bias_kernel(AttentionSplitsRun run) {
  let_next_kernel_begin();
  wait_for_kernels_before();
  attend<kHeads, Format, true, true>(run);
}

template <int kHeads, typename Format, bool kAdjusts>
void launch_splits(const AttentionSplitsRun& run, cudaStream_t stream) {
  const AttentionShape& shape = run.segments.shape;
  const AttentionForm& form = shape.form;
  LaunchShape launch_shape;
  launch_shape.block.x = kSplitThreads;
  launch_shape.grid.x = static_cast<uint32_t>(shape.q_tokens * run.splits);
  launch_shape.grid.y =
      static_cast<uint32_t>(form.kv_heads * ceil_div(form.heads / form.kv_heads, kHeads));
  launch_shape.shared_bytes = split_shared_bytes(kHeads, form.head_dim);
  launch_shape.begins_early = true;
  if (is_biased(form))
    launch(attention_bias_kernel<kHeads, Format>, launch_shape, stream, run);
  else
    launch(attention_splits_kernel<kHeads, Format, kAdjusts>, launch_shape, stream, run);
}

template <typename Format, bool kAdjusts>
void launch_heads(const AttentionSplitsRun& run, cudaStream_t stream) {
  const AttentionForm& form = run.segments.shape.form;
  switch (heads_of_block(form.heads / form.kv_heads)) {
    case 1:
      return launch_splits<1, Format, kAdjusts>(run, stream);
    case 2:
      return launch_splits<2, Format, kAdjusts>(run, stream);
    case 4:
      return launch_splits<4, Format, kAdjusts>(run, stream);
    default:
      return launch_splits<kSplitMaxHeads, Format, kAdjusts>(run, stream);
  }
}

template <typename Format>
void launch_format(const AttentionSplitsRun& run, cudaStream_t stream) {
  if (are_adjusted(run.segments.shape.form))
    launch_heads<Format, true>(run, stream);
  else
    launch_heads<Format, false>(run, stream);
}

}  // namespace

void attention_splits(const AttentionSplitsRun& run, cudaStream_t stream) {
  const AttentionShape& shape = run.segments.shape;
  if (shape.q_tokens == 0) return;
  if (run.k_scales.data != nullptr)
    launch_format<Codes>(run, stream);
  else if (!run.vectors)
    launch_format<OneByOne>(run, stream);
  else if (run.k.format == ElementFormat::f16)
    launch_format<F16>(run, stream);
  else
    launch_format<Bf16>(run, stream);
}

}  // namespace snug::backends::cuda
